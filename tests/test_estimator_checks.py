from sklearn.utils.estimator_checks import parametrize_with_checks

from rectifit import ReLURegressor


def expected_failures(estimator):
    if not estimator.positive:
        return {}
    # The data of this check have more columns than rows, and rows of weight 0.
    reason = "of equally good fits under constraints, the first one found is returned, not the shortest"
    return {"check_sample_weight_equivalence_on_dense_data": reason}


@parametrize_with_checks(
    [
        ReLURegressor(),
        ReLURegressor("sorting+iterative"),
        ReLURegressor("iterative", floor="estimate"),
        ReLURegressor(positive=True),
        ReLURegressor("sorting+iterative", bounds=(-0.5, 2.0)),
    ],
    expected_failed_checks=expected_failures,
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)
