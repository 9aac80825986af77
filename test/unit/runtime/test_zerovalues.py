from ktrainer.runtime.jobsetfacts import jobset_facts
from ktrainer.runtime.zerovalues import LEFT_OUT, WRITTEN


def test_every_type_and_field_should_exist_and_be_a_scalar() -> None:
    facts = jobset_facts()
    for name, fields in LEFT_OUT.items():
        shapes = facts.type_of(name).fields
        for field in fields:
            assert shapes[field].type in {"string", "integer", "boolean"}, (name, field)
    for name, (field, _) in WRITTEN.items():
        assert field in facts.type_of(name).fields


def test_no_field_that_must_be_there_should_be_left_out() -> None:
    facts = jobset_facts()
    for name, fields in LEFT_OUT.items():
        assert not fields & set(facts.type_of(name).required), name
