"""
Pipelines and grid search
=========================

``ReLURegressor`` is a scikit-learn estimator, so it works in pipelines and grid searches like any other. Here
spending is a curved function of income and age and depends on the region. Splines and one-hot columns turn
this into a linear model, and a ridge chosen by cross-validation keeps the variance of the many coefficients
small.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.compose import ColumnTransformer
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import OneHotEncoder, SplineTransformer, StandardScaler

from rectifit import ReLURegressor

# %%
# The households are simulated; many of them spend nothing on travel.

rng = np.random.default_rng(2)
n = 500
households = pd.DataFrame(
    {
        "income": rng.gamma(5.0, 12.0, n),
        "age": rng.uniform(20.0, 80.0, n),
        "region": rng.choice(["north", "east", "south", "west"], n),
    }
)
effect = households["region"].map({"north": 0.0, "east": -4.0, "south": 3.0, "west": 1.0})


def true_mean(income, age, effect):
    """Mean spending rises ever more slowly with income, and peaks in middle age."""
    return np.maximum(0.0, 14.0 * np.log(income / 40.0) - 0.008 * (age - 55.0) ** 2 + effect)


spending = true_mean(households["income"], households["age"], effect) * rng.gamma(4.0, 0.25, n)
print(f"{np.mean(spending == 0):.0%} spend nothing")

# %%
# The search is over the ridge and the number of knots of the pipeline.

columns = ColumnTransformer(
    [
        (
            "curves",
            Pipeline([("scale", StandardScaler()), ("spline", SplineTransformer())]),
            ["income", "age"],
        ),
        ("region", OneHotEncoder(), ["region"]),
    ]
)
pipeline = Pipeline([("columns", columns), ("relu", ReLURegressor())])
grid = {
    "columns__curves__spline__n_knots": [3, 5, 9],
    "relu__alpha": np.logspace(-3, 2, 6),
}
search = GridSearchCV(pipeline, grid, scoring="neg_root_mean_squared_error", cv=5).fit(households, spending)
print({name.split("__")[-1]: round(float(value), 3) for name, value in search.best_params_.items()})
print(f"cross-validated error {-search.best_score_:.2f}")
print(f"{search.best_estimator_['relu'].n_features_in_} coefficients")

# %%
# The left panel shows the error as a function of the ridge, and the right panel the fitted curve for one
# region.

figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4.2), layout="constrained")
results = pd.DataFrame(search.cv_results_)
for n_knots, rows in results.groupby("param_columns__curves__spline__n_knots"):
    left.plot(
        rows["param_relu__alpha"].astype(float), -rows["mean_test_score"], "o-", label=f"{n_knots} knots"
    )
left.set(xscale="log", xlabel="ridge alpha", ylabel="cross-validated error", title="Choosing the ridge")
left.legend()

incomes = np.linspace(*households["income"].quantile([0.0, 0.98]), 300)
people = pd.DataFrame({"income": incomes, "age": 50.0, "region": "south"})
near = (households["region"] == "south") & (np.abs(households["age"] - 50.0) < 12.0)
right.scatter(
    households["income"][near], spending[near], s=18, alpha=0.6, linewidths=0, label="south, aged 38 to 62"
)
right.plot(incomes, true_mean(incomes, 50.0, 3.0), color="black", linewidth=4, alpha=0.3, label="truth at 50")
right.plot(incomes, search.predict(people), color="C3", linewidth=2, label="fit at 50")
right.set(xlabel="income", ylabel="spending on travel", title="A curve with a corner")
right.legend(loc="upper left")
plt.show()
