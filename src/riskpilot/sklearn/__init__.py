"""scikit-learn estimators whose choice comes with a promise: a search, and thresholds.

>>> from sklearn.datasets import make_classification
>>> from sklearn.linear_model import LogisticRegression
>>> X, y = make_classification(4000, random_state=0)
>>> model = LogisticRegression().fit(X[:1000], y[:1000])
>>> tuned = RiskControlledThreshold(
...     model, risks={"false_positive_rate": 0.05}, minimize="false_negative_rate", random_state=0
... ).fit(X[1000:], y[1000:])
>>> sorted(tuned.best_params_)
['threshold']
"""

from riskpilot.errors import NotCertifiedError
from riskpilot.sklearn.search import RiskControlledSearch
from riskpilot.sklearn.thresholds import RiskControlledThreshold

__all__ = ["NotCertifiedError", "RiskControlledSearch", "RiskControlledThreshold"]
