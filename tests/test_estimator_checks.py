from sklearn.utils.estimator_checks import parametrize_with_checks

from rectifit import ReLURegressor


@parametrize_with_checks(
    [
        ReLURegressor(),
        ReLURegressor("sorting+iterative"),
        ReLURegressor("iterative", floor="estimate"),
        ReLURegressor(positive=True),
        ReLURegressor("sorting+iterative", bounds=(-0.5, 2.0)),
    ]
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)
