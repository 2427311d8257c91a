"""Calibration labels that arrive one after another: taken, kept in the storage, saved in files."""
