from ktrainer.machinery.cache.once import LIMIT, Once


def test_a_thing_should_be_new_once() -> None:
    once = Once()
    assert once.is_new("a")
    assert not once.is_new("a")
    assert once.is_new("b")


def test_the_oldest_should_be_forgotten_first() -> None:
    once = Once()
    for number in range(LIMIT + 1):
        assert once.is_new(number)
    assert not once.is_new(1)
    assert once.is_new(0)
