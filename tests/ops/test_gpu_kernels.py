"""The GPU kernels compile for machines that are not here."""

from __future__ import annotations

import os

import pytest

pytest.importorskip("triton")
if os.environ.get("TRITON_INTERPRET"):
    pytest.skip("the interpreter compiles nothing", allow_module_level=True)

from anyorder.bench.gpu_kernels import KERNELS, Shape, compiled, launches


def test_every_kernel_is_launched_with_all_of_its_arguments():
    found = launches(Shape("relu", 8, 8, 17))
    assert [launch.kernel for launch in found] == list(KERNELS)
    assert all(set(launch.function.arg_names) == set(launch.arguments) for launch in found)


@pytest.mark.parametrize("capability", [80, 90])
def test_the_forward_pass_fits_registers(capability, tmp_path, monkeypatch):
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))
    first, *_ = launches(Shape("elu", 8, 8, 8))
    found = compiled(first, capability)
    assert found.kernel == "forward_groups"
    assert 16 <= found.registers <= 255
    assert found.spilled == 0
