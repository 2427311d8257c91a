"""What tasks, risks and free objectives are called in figures and tables."""

TITLES = {"celeba": "CelebA", "selective_celeba": "Selective CelebA", "vae": "VAE"}
FREE = {"ddp": "DDP", "worst_group_error": "worst-group error", "kld": "KLD"}
RISKS = {"drop": "accuracy drop", "reconstruction": "reconstruction error"}


def task_title(task: str) -> str:
    """Return what a task is called in figures."""
    return TITLES.get(task, task.replace("_", " ").capitalize())


def risk_label(name: str) -> str:
    """Return what a risk is called in figures."""
    return RISKS.get(name, name)


def free_label(name: str) -> str:
    """Return what a free objective is called in figures."""
    return FREE.get(name, name)
