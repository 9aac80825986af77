from ktrainer.cli.order import ordered


def test_keys_should_come_in_the_order_in_which_people_write_them() -> None:
    value = {
        "spec": {"template": {"spec": {"volumes": [], "containers": [{"env": [], "x": 1, "image": "i", "name": "n"}]}}},
        "metadata": {"ownerReferences": [], "labels": {}, "namespace": "ns", "name": "n"},
        "kind": "K",
        "apiVersion": "v1",
    }
    made = ordered(value)
    assert made == value
    assert list(made) == ["apiVersion", "kind", "metadata", "spec"]
    assert list(made["metadata"]) == ["name", "namespace", "labels", "ownerReferences"]
    pod = made["spec"]["template"]["spec"]
    assert list(pod) == ["containers", "volumes"]
    assert list(pod["containers"][0]) == ["name", "image", "env", "x"]


def test_other_keys_should_keep_their_order() -> None:
    assert list(ordered({"b": 1, "a": 2, "name": 3, "c": 4})) == ["name", "b", "a", "c"]
