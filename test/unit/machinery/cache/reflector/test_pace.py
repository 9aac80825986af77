from ktrainer.machinery.cache.reflector.pace import SLICE_BYTES, SLICE_STEPS, Pace


def test_a_slice_should_be_over_after_its_steps() -> None:
    pace = Pace()
    steps = [pace.is_slice_over() for _ in range(2 * SLICE_STEPS)]
    assert [number for number, is_over in enumerate(steps, 1) if is_over] == [SLICE_STEPS, 2 * SLICE_STEPS]


def test_a_slice_should_be_over_after_its_bytes() -> None:
    pace = Pace()
    sizes = [SLICE_BYTES - 1, 1, SLICE_BYTES - 1, SLICE_BYTES]
    assert [pace.is_slice_over(size) for size in sizes] == [False, True, False, True]
