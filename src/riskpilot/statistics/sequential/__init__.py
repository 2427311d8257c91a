"""Labels that arrive one after another: boundaries and capitals that hold whenever one stops."""
