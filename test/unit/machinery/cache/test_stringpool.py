from ktrainer.machinery.cache.stringpool import LIMIT, StringPool


def text(number: int) -> str:
    return "".join(["text", str(number)])


def test_equal_strings_should_become_one() -> None:
    pool = StringPool()
    assert text(1) is not text(1)
    assert pool.share(text(1)) is pool.share(text(1))


def test_a_pool_should_not_grow_without_bounds() -> None:
    pool = StringPool()
    first = pool.share(text(0))
    for number in range(1, LIMIT):
        pool.share(text(number))
    assert pool.share(text(0)) is first
    pool.share(text(LIMIT))
    assert pool.share(text(0)) is not first
    assert pool.share(text(LIMIT)) is pool.share(text(LIMIT))
