"""Any model of ours, and modules that hold one, go into a folder and come back as they were."""

from __future__ import annotations

import copy
import json
import pickle

import pytest
import torch
from torch import nn

import anyorder
from anyorder import (
    Elu,
    Encoder,
    EncoderLayer,
    EquivariantAttention,
    EquivariantLinear,
    EquivariantMLP,
    HypergraphEncoder,
    MixedEncoder,
    PropagationEncoder,
    RandomFeatures,
    SavedModule,
    Softmax,
    SymmetricLinear,
)
from anyorder.algebra import select
from anyorder.errors import InputError
from anyorder.testing import random_features

SIZES = {"channels_in": 3, "channels": 8, "channels_out": 2, "heads": 2, "head_channels": 4}
LAYER = {"order_in": 2, "order_out": 1, "channels": 8, "heads": 2, "head_channels": 4}
HYPER = {"channels_in": 3, "channels": 8, "channels_out": 2, "layers": 2, "heads": 2}
MODULES = {
    "encoder": lambda: Encoder(order_in=2, orders=(2, 0), kernel="relu", **SIZES),
    "two kernels": lambda: Encoder(order_in=2, orders=(2,), kernel={"local": "softmax", "global": Elu(eps=1e-4)}, **SIZES),
    "selection": lambda: Encoder(
        order_in=2, orders=[2], kernel=RandomFeatures(num_features=5), classes="pointwise", **SIZES
    ),
    "mlp": lambda: EquivariantMLP(order_in=2, orders=(2, 1), channels_in=3, channels=4, reduce="mean"),
    "linear": lambda: EquivariantLinear(order_in=2, order_out=1, channels_in=3, channels_out=2),
    "classes": lambda: EquivariantLinear(
        order_in=2, order_out=2, channels_in=3, channels_out=2, classes=select(2, 2, "pointwise")
    ),
    "attention": lambda: EquivariantAttention(kernel="favor", **LAYER),
    "layer": lambda: EncoderLayer(kernel="elu", coupling="exact", **LAYER),
    "symmetric": lambda: SymmetricLinear(order_in=3, order_out=2, channels_in=3, channels_out=2),
    "mixed": lambda: MixedEncoder(
        orders_in=(1, 2), orders=((1, 2), (1,)), kernel="relu", **{**SIZES, "channels_in": {1: 3, 2: 4}}
    ),
    "hypergraph": lambda: HypergraphEncoder(head_channels=4, kernel="relu", **HYPER),
    "propagation": lambda: PropagationEncoder(kernel=Elu(), **HYPER),
}


def same(one: nn.Module, other: nn.Module) -> bool:
    first, second = one.state_dict(), other.state_dict()
    return [*first] == [*second] and all(torch.equal(first[name], second[name]) for name in first)


@pytest.mark.parametrize("name", MODULES)
def test_comes_back(name, tmp_path):
    model = MODULES[name]()
    model.save(tmp_path / "model")
    assert {path.name for path in (tmp_path / "model").iterdir()} == {"config.json", "model.safetensors"}
    for back in (type(model).load(tmp_path / "model"), anyorder.load(tmp_path / "model")):
        assert type(back) is type(model) and repr(back) == repr(model) and same(back, model) and not back.training


def test_answers_are_equal(tmp_path):
    x = random_features(order=2, channels=3)
    model = MODULES["encoder"]().double()
    model.save(tmp_path)
    back = Encoder.load(tmp_path)
    assert torch.equal(back(x.to(torch.float64)).values, model.eval()(x.to(torch.float64)).values)


class Scorer(SavedModule):
    """A user's module that holds one of ours."""

    def __init__(self, encoder: Encoder, classes: int, scale: float = 1.0) -> None:
        super().__init__()
        self.encoder, self.scale = encoder, scale
        self.last = nn.Linear(encoder.channels_out, classes)


def test_modules_of_users(tmp_path):
    scorer = Scorer(MODULES["two kernels"](), classes=5)
    scorer.save(tmp_path)
    back = Scorer.load(tmp_path)
    assert same(back, scorer) and back.encoder.layers[0].attention.kernels == (Softmax(), Elu(eps=1e-4))
    assert same(anyorder.load(tmp_path), scorer)


def test_copies_and_pickles_can_be_saved(tmp_path):
    model = MODULES["encoder"]()
    for number, other in enumerate((copy.deepcopy(model), pickle.loads(pickle.dumps(model)))):
        other.save(tmp_path / str(number))
        assert same(Encoder.load(tmp_path / str(number)), model)


def test_what_cannot_be_saved(tmp_path):
    predicate = EquivariantLinear(order_in=1, order_out=1, channels_in=2, channels_out=2, classes=lambda cls: True)
    with pytest.raises(TypeError, match=r"EquivariantLinear\.classes cannot be saved: expected .* got function"):
        predicate.save(tmp_path / "none")
    assert not (tmp_path / "none").exists()


def test_files_name_known_classes_only(tmp_path):
    MODULES["linear"]().save(tmp_path)
    with pytest.raises(InputError, match="holds a EquivariantLinear, expected a Encoder"):
        Encoder.load(tmp_path)
    path = tmp_path / "config.json"
    data = json.loads(path.read_text())
    path.write_text(json.dumps({"model": {**data["model"], "module": "os.system"}}))
    with pytest.raises(InputError, match=r"names the module 'os.system', which no imported module defines"):
        anyorder.load(tmp_path)
    with pytest.raises(FileNotFoundError, match="is not a folder that save"):
        Encoder.load(tmp_path / "nothing")


def test_damaged_settings_are_refused(tmp_path):
    MODULES["linear"]().save(tmp_path)
    path = tmp_path / "config.json"
    data = json.loads(path.read_text())
    settings = {**data["model"]["settings"], "bias": False}
    path.write_text(json.dumps({**data, "model": {**data["model"], "settings": settings}}))
    with pytest.raises(InputError, match=r"config\.json is damaged: it does not have the checksum"):
        anyorder.load(tmp_path)
    path.write_text(json.dumps({"model": data["model"], "sha257": data["sha256"]}))
    with pytest.raises(InputError, match=r"expected the entries \['model'\], got 'sha257'"):
        anyorder.load(tmp_path)


@pytest.mark.parametrize(
    ("setting", "value"), [("channels_in", 2**31), ("channels_out", 10**400), ("order_out", 111), ("order_out", 8)]
)
def test_settings_cannot_ask_for_more_than_the_weights_hold(setting, value, tmp_path):
    MODULES["linear"]().save(tmp_path)
    data = json.loads((tmp_path / "config.json").read_text())
    data["model"]["settings"][setting] = value
    (tmp_path / "config.json").write_text(json.dumps({"model": data["model"]}))
    with pytest.raises(InputError, match=r"model\.safetensors does not belong to this model|config\.json"):
        anyorder.load(tmp_path)


def test_layers_cannot_be_more_than_the_weights_are(tmp_path):
    HypergraphEncoder(head_channels=4, kernel="relu", **HYPER).save(tmp_path)
    data = json.loads((tmp_path / "config.json").read_text())
    data["model"]["settings"]["layers"] = 10**9
    (tmp_path / "config.json").write_text(json.dumps({"model": data["model"]}))
    with pytest.raises(InputError, match=r"has 1000000000 layers, and .*model\.safetensors only \d+ tensors"):
        anyorder.load(tmp_path)


def test_names_of_kernels():
    with pytest.raises(ValueError, match=r"kernel must be one of \['softmax', 'elu', 'relu', 'favor', .* got 'rbf'"):
        Encoder(order_in=2, orders=(2,), kernel="rbf", **SIZES)
    with pytest.raises(TypeError, match="of linear time here"):
        HypergraphEncoder(head_channels=4, kernel="softmax", **HYPER)


def test_shipped_models_by_name():
    model = anyorder.load("delaunay")
    assert same(model, anyorder.load("delaunay-1-ours")) and not model.training
    with pytest.raises(FileNotFoundError, match="comes with the package: delaunay-1-ours, delaunay-2-s2g"):
        anyorder.load("delauny")


def test_hub_mixin(tmp_path):
    hub = pytest.importorskip("huggingface_hub", reason="huggingface_hub is not installed")

    class HubEncoder(Encoder, hub.PyTorchModelHubMixin):
        pass

    model = HubEncoder(order_in=2, orders=(2, 0), kernel="relu", **SIZES)
    model.save_pretrained(tmp_path)
    assert same(HubEncoder.from_pretrained(tmp_path), model)
    settings = json.loads((tmp_path / "config.json").read_text())
    assert settings["kernel"] == "relu" and settings["orders"] == [2, 0]
