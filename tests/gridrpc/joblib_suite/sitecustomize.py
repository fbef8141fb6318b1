"""Scripts that joblib's tests run in interpreters of their own know the backend as well."""

import gridrpc.joblib  # noqa: F401 - registers the backend
