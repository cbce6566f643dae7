"""Random problems of real packages in which not everything newest fits: seeded, so that a number says which problem it is."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

from hard_problems import Problem

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    Releases = Callable[[str], Sequence[str]]
    """The final releases of a project from 2021 on that have a wheel, oldest first."""

KINDRED = (
    ("transformers", "tokenizers", "huggingface-hub", "accelerate", "peft", "datasets", "safetensors", "diffusers"),
    ("sentence-transformers", "transformers", "evaluate", "optimum", "trl", "bitsandbytes", "timm", "setfit"),
    ("numpy", "pandas", "scipy", "scikit-learn", "numba", "matplotlib", "pyarrow", "xarray", "statsmodels", "seaborn"),
    ("torch", "torchvision", "torchaudio", "torchmetrics", "pytorch-lightning", "lightning", "kornia", "triton"),
    ("tensorflow", "keras", "protobuf", "tensorboard", "h5py", "ml-dtypes", "grpcio", "tensorflow-datasets"),
    ("jax", "jaxlib", "flax", "optax", "chex", "ml-dtypes", "orbax-checkpoint", "numpyro"),
    ("langchain", "langchain-core", "langchain-openai", "openai", "pydantic", "tiktoken", "httpx", "chromadb"),
    ("fastapi", "pydantic", "starlette", "uvicorn", "httpx", "gradio", "typing-extensions", "streamlit"),
    ("ray", "protobuf", "grpcio", "mlflow", "wandb", "click", "pyarrow", "boto3", "botocore", "aiobotocore", "s3fs", "fsspec"),
    ("librosa", "numba", "soundfile", "openai-whisper", "faster-whisper", "ctranslate2", "onnxruntime", "speechbrain"),
    ("opencv-python", "albumentations", "ultralytics", "scikit-image", "pillow", "imageio", "onnx", "onnxruntime"),
    ("vllm", "outlines", "xformers", "compressed-tensors", "numba", "tiktoken", "lm-format-enforcer"),
    ("spacy", "thinc", "pydantic", "typer", "nltk", "gensim", "scipy", "numpy"),
    ("xgboost", "lightgbm", "catboost", "shap", "scikit-learn", "numpy", "optuna", "sqlalchemy"),
)
"""Projects that people install together, and that constrain each other."""

EXTRAS = {
    "transformers": "torch", "datasets": "audio", "ray": "default", "gradio": "oauth", "fastapi": "standard",
    "uvicorn": "standard", "pandas": "parquet", "jax": "cuda12", "optimum": "onnxruntime", "huggingface-hub": "cli",
    "httpx": "http2", "mlflow": "extras",
    "accelerate": "testing", "kornia": "x", "wandb": "media", "pydantic": "email",
}  # fmt: skip
PYTHONS = (
    *(">=3.8", ">=3.9", ">=3.10", ">=3.11", ">=3.12", ">=3.8,<3.12", ">=3.9,<3.13", ">=3.10,<3.12", ">=3.8,<3.12"),
    *("3.8", "3.9", "3.10", "3.11", "3.12", "3.13", "3.14"),
)


OF_STRANGERS, WITH_SDISTS, WITH_EXTRAS = 0.2, 0.08, 0.2
"""The shares of requirements of any other project, of problems with source distributions, and of requirements with an extra."""


def random_problem(seed: int, hosts: Sequence[str], releases: Releases) -> Problem:
    """Return the problem of a number: two to five requirements, most of them of projects that constrain each other."""
    random = Random(seed)
    wanted = random.choice((2, 2, 3, 3, 3, 4, 4, 5))
    kin = list(random.choice(KINDRED))
    random.shuffle(kin)
    strangers = [name for group in KINDRED for name in group]
    names = dict.fromkeys(random.choice(strangers) if random.random() < OF_STRANGERS else kin.pop() for _ in range(wanted))
    packages = [one for one in (_requirement(name, random, releases(name)) for name in names) if one]
    allow = ("sdist",) if random.random() < WITH_SDISTS else ()
    host, python = random.choice(hosts), random.choice(PYTHONS)
    return Problem(name=f"random {seed}", theme="random", host=host, python=python, packages=tuple(packages), allow=allow)


def _requirement(name: str, random: Random, releases: Sequence[str]) -> str:
    if not releases:
        return ""
    shown = f"{name}[{EXTRAS[name]}]" if name in EXTRAS and random.random() < WITH_EXTRAS else name
    at = random.randrange(len(releases))
    version = releases[at]
    form = random.choices(("==", "<", ">=", "range", "series", ""), (30, 18, 22, 10, 10, 10))[0]
    if form == "range":
        above = releases[min(at + random.randrange(1, 12), len(releases) - 1)]
        return f"{shown}>={version},<{above}" if above != version else f"{shown}=={version}"
    if form == "series":
        return f"{shown}=={'.'.join(version.split('.')[:2])}.*"
    return f"{shown}{form}{version}" if form else shown
