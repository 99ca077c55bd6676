from sklearn.utils.estimator_checks import parametrize_with_checks

from rectifit import ReLURegressor


@parametrize_with_checks(
    [ReLURegressor(), ReLURegressor("sorting+iterative"), ReLURegressor("iterative", floor="estimate")]
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)
