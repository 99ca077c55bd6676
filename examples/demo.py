"""Fit a generated instance with every method of the package, side by side."""

import numpy as np

from rectifit import solve
from rectifit.datasets import make_relu

X, y, beta, X_test, y_test = make_relu(400, 20, noise=0.3, random_state=0)
print(f"{len(y)} samples, {X.shape[1]} features, {np.count_nonzero(y > 0)} positive outcomes")
print("y = max(0, X beta) + noise; the first fit on a new machine waits a few seconds for the compiler\n")

print(f"{'method':20}{'objective':>12}{'test error':>12}{'distance':>10}{'surrogates':>12}{'seconds':>9}")
for method in ("sgd", "gd", "sorting", "sorting+gd", "sorting+iterative", "approximation", "auto"):
    solution = solve(X, y, method, fit_intercept=False)
    solution.verify()
    error = float(np.sum((solution.predict(X_test) - y_test) ** 2))
    distance = float(np.linalg.norm(solution.beta - beta))
    print(
        f"{method:20}{solution.objective:12.4f}{error:12.4f}{distance:10.4f}"
        f"{solution.n_surrogates:12}{solution.seconds:9.3f}"
    )

certificate = solution.certificate
print("\nobjective: sum of squares on the training set; distance: from the coefficients that made the data")
print(f"of the last fit: no coefficients have an objective below {certificate.lower_bound:.4f} (proved)")
print("every solution above was recomputed from the data: verified")
