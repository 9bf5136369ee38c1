import pytest

from phygail.config import InputError, Registry


def colors() -> Registry[int]:
    registry: Registry[int] = Registry("color")
    registry.add("red", 1)
    registry.add("blue", 2)
    return registry


def test_entries_keep_their_order_and_names():
    registry = colors()
    assert registry.names() == list(registry) == ["red", "blue"]
    assert registry.get("blue") == 2
    assert "red" in registry
    assert "green" not in registry


def test_a_name_is_given_once():
    with pytest.raises(InputError, match="color 'red' is registered twice: choose another name"):
        colors().add("red", 3)


def test_an_unknown_name_gets_the_nearest_and_all():
    with pytest.raises(InputError, match=r"unknown color 'rad': did you mean 'red'\? there are red, blue"):
        colors().get("rad")
    with pytest.raises(InputError, match="unknown color 'zzz': there are red, blue"):
        colors().get("zzz")
