"""Tools for those who publish the package: tested versions, and the check of a release."""
