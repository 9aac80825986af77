from ktrainer.api.trainjob import RuntimeRef, Trainer, TrainJob, TrainJobSpec
from ktrainer.framework.reserved import refuse_reserved
from ktrainer.kube.meta import ObjectMeta


def trainjob(trainer: Trainer | None) -> TrainJob:
    return TrainJob(
        metadata=ObjectMeta(name="demo"), spec=TrainJobSpec(runtime_ref=RuntimeRef(name="torch"), trainer=trainer)
    )


def test_variables_that_are_set_by_the_runtime_should_be_refused_together() -> None:
    trainer = Trainer(env=[{"name": "B", "value": "1"}, {"name": "C", "value": "2"}, {"name": "A", "value": "3"}])
    (error,) = refuse_reserved(trainjob(trainer), {"A", "B", "D"})
    assert str(error) == 'spec.trainer.env: Invalid value: ["A","B"]: these variables are set by the runtime'


def test_other_variables_should_pass() -> None:
    assert refuse_reserved(trainjob(Trainer(env=[{"name": "C", "value": "2"}])), {"A"}) == []
    assert refuse_reserved(trainjob(None), {"A"}) == []
