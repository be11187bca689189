"""The hot arithmetic: plain functions of arrays, no components, no labels of users."""
