"""Every reader against files that were changed at random: it takes them or says what is wrong, in one kind of error."""
