"""Requirement sets that people really write, for comparing resolvers: easy ones, large ones, and ones that cannot be met."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RequirementSet:
    """A request for one environment. `why` explains a known difference between the answers of different resolvers."""

    name: str
    requirements: tuple[str, ...]
    python: str = "3.12"
    why: str = ""
    platform: str = "linux/amd64"
    constraints: tuple[str, ...] = ()


_PLAIN = (
    RequirementSet("numpy", ("numpy",)),
    RequirementSet("requests with an extra", ("requests[socks]>=2.31",), "3.11"),
    RequirementSet("web service", ("fastapi[standard]", "sqlalchemy[asyncio]>=2", "alembic", "httpx[http2]")),
    RequirementSet("notebooks", ("pandas", "scikit-learn", "matplotlib", "jupyterlab", "ipywidgets")),
    RequirementSet(
        "markers", ("tomli; python_version < '3.11'", "uvloop; sys_platform != 'win32'", "rich; extra == 'x'", "attrs")
    ),
    RequirementSet("task queue", ("django>=4.2,<5", "celery[redis]", "psycopg[binary]", "djangorestframework")),
    RequirementSet("demos", ("gradio", "streamlit", "altair", "plotly")),
    RequirementSet("arrays", ("dask[complete]", "xarray[complete]", "zarr")),
    RequirementSet("cloud storage", ("boto3", "s3fs", "aiobotocore", "awscli"), "3.11"),
    RequirementSet("telemetry", ("opentelemetry-instrumentation-fastapi", "opentelemetry-exporter-otlp")),
    RequirementSet("documentation", ("mkdocs-material[imaging]", "sphinx", "myst-parser", "furo")),
    RequirementSet("checking", ("pytest", "pytest-cov", "hypothesis", "tox", "mypy", "ruff", "pre-commit"), "3.13"),
    RequirementSet("flask on a new Python", ("flask[async]", "flask-sqlalchemy", "gunicorn", "psycopg[binary,pool]"), "3.14"),
    RequirementSet("scraping", ("scrapy", "playwright", "beautifulsoup4", "lxml"), "3.13"),
    RequirementSet("geography", ("geopandas", "rasterio", "shapely", "folium", "pyproj"), "3.13"),
    RequirementSet("tables", ("polars[all]", "duckdb", "pyarrow", "deltalake")),
    RequirementSet("notebooks on 3.14", ("pandas", "scikit-learn", "matplotlib", "jupyterlab", "seaborn"), "3.14"),
)

_TRAINING = (
    RequirementSet("torch", ("torch",)),
    RequirementSet(
        "torch 2.7.1",
        ("torch==2.7.1", "torchvision", "torchaudio"),
        why="torchaudio declares no torch requirement, so by its metadata any release goes with any torch; the "
        "matrix knows from the wheel itself which one it calls.",
    ),
    RequirementSet("torch 2.6", ("torch==2.6.0", "torchvision==0.21.0", "torchaudio==2.6.0", "xformers"), "3.11"),
    RequirementSet("transformers", ("transformers",)),
    RequirementSet("fine-tuning", ("transformers[torch]", "peft", "bitsandbytes", "datasets", "trl")),
    RequirementSet("quick fine-tuning", ("unsloth",)),
    RequirementSet(
        "axolotl",
        ("axolotl",),
        "3.11",
    ),
    RequirementSet("lightning", ("lightning", "torchmetrics", "tensorboard", "hydra-core"), "3.11"),
    RequirementSet("diffusers", ("diffusers[torch]", "transformers", "safetensors", "opencv-python-headless")),
    RequirementSet("vision", ("timm", "open-clip-torch", "albumentations", "ultralytics"), "3.11"),
    RequirementSet("xformers alone", ("xformers",)),
    RequirementSet("graphs", ("torch-geometric", "pytorch-lightning", "ogb", "dgl")),
    RequirementSet("speech", ("nemo-toolkit[asr]",), "3.11"),
    RequirementSet("whisper", ("faster-whisper", "pyannote-audio", "librosa"), "3.11"),
    RequirementSet(
        "source distributions only",
        ("deepspeed", "torch"),
        "3.11",
        why="deepspeed publishes source distributions, but for the pre-release 0.3.1.dev5 of 2020. uv, told to "
        "take no source distributions, falls back on that; provision takes a pre-release only where a project "
        "has nothing else or somebody names one, and says what would help: `allow: [sdist]`. What deepspeed "
        "requires is known by building it alone: with `allow: [build]` provision finds deepspeed 0.19.8, and uv "
        "without the ban the same 43 packages (read 2026-11-21).",
    ),
    RequirementSet("a kernel from source", ("flash-attn", "torch"), "3.11"),
    RequirementSet("experiment tracking", ("accelerate", "wandb", "mlflow", "optuna", "ray[tune]"), "3.11"),
    RequirementSet("reinforcement", ("stable-baselines3[extra]", "gymnasium[classic-control]", "torch"), "3.11"),
    RequirementSet("jax", ("jax[cuda12]", "flax", "optax")),
    RequirementSet("jax beside torch", ("jax[cuda12]", "flax", "torch", "transformers")),
    RequirementSet("tensorflow", ("tensorflow[and-cuda]", "keras"), "3.11"),
    RequirementSet(
        "three frameworks",
        ("tensorflow", "jax", "torch", "keras"),
        "3.12",
        why="Where CUDA is asked for, provision installs TensorFlow and JAX with their CUDA libraries, as "
        "tensorflow[and-cuda] and jax[cuda12], and then TensorFlow 2.20: that of 2.21 asks for nvidia-nccl-cu12 "
        ">=2.27.7, and torch 2.10 pins 2.27.5. uv was asked for the plain distributions, so it leaves these "
        "libraries out.",
    ),
    RequirementSet(
        "old tensorflow",
        ("tensorflow==2.15.*", "tf-keras", "numpy>=1.26"),
        "3.11",
        why="TensorFlow 2.15 is compiled for GPUs up to sm_80, and the machine has an H100 (9.0). provision takes "
        "it with `allow: [minor-version, ptx-jit]`, as it says; uv and pip know no GPU.",
    ),
    RequirementSet("cupy", ("cupy-cuda12x", "numba", "cuda-python"), "3.12"),
    RequirementSet("language", ("spacy[cuda12x]", "gensim", "nltk")),
    RequirementSet("dataframes on a GPU", ("cudf-cu12", "dask-cudf-cu12"), "3.12"),
    RequirementSet("torch on arm64", ("torch", "torchvision", "transformers"), "3.12", platform="linux/arm64"),
    RequirementSet("notebooks on arm64", ("pandas", "scikit-learn", "jupyterlab"), "3.13", platform="linux/arm64"),
    RequirementSet("torch on a Mac", ("torch", "torchvision", "transformers"), "3.12", platform="macos/arm64"),
    RequirementSet("services on a Mac", ("fastapi[standard]", "uvicorn[standard]", "asyncpg"), "3.13", platform="macos/arm64"),
    RequirementSet("torch on 3.14", ("torch", "transformers"), "3.14"),
)

_SERVING = (
    RequirementSet(
        "vllm",
        ("vllm",),
        why="The newest cuda-python needs cuda-bindings ~=13.4.4, so the newest of both cannot be had: provision "
        "keeps the newer cuda-python; uv takes cuda-bindings 13.5.0 and falls back to cuda-python 12.6.2, "
        "which does not depend on it yet.",
    ),
    RequirementSet("vllm 0.8.5", ("vllm==0.8.5",), "3.11"),
    RequirementSet("sglang", ("sglang",)),
    RequirementSet("embeddings", ("sentence-transformers", "faiss-cpu", "langchain", "langchain-openai", "chromadb")),
    RequirementSet("agents", ("langgraph", "langchain-anthropic", "langsmith", "tavily-python"), "3.13"),
    RequirementSet(
        "indexes of documents",
        ("llama-index", "llama-index-vector-stores-qdrant", "unstructured[pdf]"),
        "3.11",
    ),
    RequirementSet("ray", ("ray[default,serve,tune]", "mlflow", "wandb")),
    RequirementSet("evaluation", ("lm-eval[vllm]",), "3.11"),
    RequirementSet("onnx", ("optimum[onnxruntime-gpu]", "onnxruntime-gpu", "onnx"), "3.11"),
)

_DATA = (
    RequirementSet("tabular", ("autogluon.tabular[all]",), "3.11"),
    RequirementSet("warehouse", ("dbt-core", "dbt-bigquery", "dbt-snowflake"), "3.11"),
    RequirementSet("clusters", ("pyspark[connect]==3.5.*", "delta-spark", "pandas<3"), "3.11"),
    RequirementSet(
        "managed training",
        ("google-cloud-aiplatform", "kfp", "google-cloud-bigquery<3.20"),
        "3.11",
    ),
    RequirementSet("workflows", ("apache-airflow==2.10.5", "apache-airflow-providers-google"), "3.11"),
    RequirementSet(
        "workflows with constraints",
        ("apache-airflow[postgres,celery]==2.10.5",),
        "3.11",
        constraints=("sqlalchemy==1.4.54", "flask==2.2.5", "pendulum==3.0.0", "celery==5.4.0", "connexion==2.14.2"),
    ),
    RequirementSet("dagster", ("dagster", "dagster-webserver", "dagster-postgres", "dagster-aws"), "3.12"),
    RequirementSet("prefect", ("prefect", "prefect-aws", "great-expectations"), "3.12"),
    RequirementSet(
        "a platform of 400",
        (
            "apache-airflow[google,amazon,postgres,celery,kubernetes]",
            "ray[default,serve,tune]",
            "mlflow",
            "jupyterlab",
            "langchain",
            "langchain-openai",
            "chromadb",
        ),
        why="uv falls back to mlflow 1.27.0, of 2022, which provision refuses: its metadata has `scikit-learn "
        "(>=1.0.*)`, which PEP 508 and PEP 440 do not allow. provision keeps mlflow 3.",
    ),
)

_OLD = (
    RequirementSet("old numpy", ("numpy<2", "pandas", "scipy", "numba"), "3.11"),
    RequirementSet("old pydantic", ("pydantic<2", "fastapi", "langchain"), "3.11"),
    RequirementSet("old langchain", ("langchain<0.2", "langchain-openai<0.2", "openai<2"), "3.11"),
    RequirementSet("old django", ("django==3.2.*", "djangorestframework", "celery<5.3"), "3.11"),
    RequirementSet("old torch", ("torch==2.2.*", "torchvision", "numpy<2", "transformers<4.45"), "3.11"),
)

_RULES = (
    RequirementSet("pre-release by name", ("numpy>=2.2.0rc1,<2.3", "scipy<1.16")),
    RequirementSet(
        "pre-releases only",
        ("opentelemetry-semantic-conventions>=0.40b0", "azure-ai-ml"),
        why="The newest of both cannot be had: uv keeps the newest semantic conventions and falls back to "
        "azure-ai-ml 1.23.1, which does not use them; provision goes one beta back and keeps azure-ai-ml "
        "1.35.2.",
    ),
    RequirementSet("a yanked pin", ("attrs==21.1.0", "pytest"), "3.11"),
    RequirementSet("yanked in a range", ("attrs>=21,<21.2", "pytest<7"), "3.11"),
    RequirementSet("arbitrary equality", ("requests===2.31.0", "urllib3===2.0.7"), "3.11"),
    RequirementSet("compatible release", ("django~=4.2.3", "requests~=2.31", "numpy~=1.26"), "3.12"),
    RequirementSet("an epoch", ("pytz", "python-dateutil!=1!2.0", "six<1!0"), "3.12"),
    RequirementSet("a local version", ("numpy==2.1.0+local",), "3.12"),
    RequirementSet("extras of themselves", ("jupyter-server[test]", "dask[complete]", "pandas[all]"), "3.12"),
    RequirementSet("constraints alone", ("fastapi", "uvicorn"), "3.12", constraints=("pydantic<2.10", "starlette<0.42")),
    RequirementSet("postal releases", ("tensorboard-data-server", "python-dateutil==2.9.0.post0"), "3.12"),
)

_IMPOSSIBLE = (
    RequirementSet("framework and companion apart", ("torch==2.6.0", "torchvision==0.22.0")),
    RequirementSet("numpy before pandas", ("numpy<1.20", "pandas>=2.2")),
    RequirementSet("too new a Python", ("vllm==0.8.5",), "3.14"),
    RequirementSet("no such version", ("requests==99.0",)),
    RequirementSet("tensorflow before numpy 2", ("tensorflow==2.15.*", "numpy>=2"), "3.11"),
    RequirementSet("chains apart", ("langchain<0.2", "langchain-openai>=0.3"), "3.11"),
    RequirementSet("vllm and a new numpy", ("vllm==0.8.5", "numpy>=2.3"), "3.11"),
    RequirementSet("constraints too narrow", ("transformers>=4.50",), "3.12", constraints=("tokenizers<0.20",)),
)

_FOUND = (
    RequirementSet(
        "a lock with two cuDNN",
        ("nvidia-cudnn-cu12==9.24.0.43", "nvidia-cudnn-cu13==9.24.0.43"),
        "3.13",
        why="As JAX's own build pins them. Both write nvidia/cudnn/lib/libcudnn_ops.so.9 and others, each for its CUDA major, "
        "so that whichever is installed last is there for both.",
    ),
    RequirementSet("a source distribution behind a hard choice", ("boto3<1.25", "awscli<1.26", "s3fs>=0.4", "wget"), "3.11"),
    RequirementSet("a wheel for Python 2 alone", ("langdetect", "sentence-transformers")),
    RequirementSet(
        "compiled against NumPy 1",
        ("pandas==1.5.3", "numpy>=1.24"),
        "3.11",
        why="pandas 1.5.3 was compiled against NumPy 1 and sets no upper bound, so by its metadata any NumPy goes with it; its "
        "import fails beside NumPy 2.",
    ),
    RequirementSet(
        "fine-tuning with xformers",
        ("torch", "xformers", "transformers", "peft", "trl", "bitsandbytes", "evaluate", "tensorboard"),
    ),
    RequirementSet(
        "a backport for old patches",
        ("redis>=5", "django-redis"),
        "3.11",
        why="redis requires async-timeout before Python 3.11.3. A target states a series, and provision takes a marker that "
        "holds for its first or its newest patch: a backport that is not needed does no harm, one that is missing does.",
    ),
    RequirementSet("documents to text", ("mineru[all]",)),
    RequirementSet("tensorflow before numpy 2 on a Mac", ("tensorflow==2.15.*", "numpy>=2"), "3.11", platform="macos/arm64"),
)
"""What was found among the requirement files of public repositories: each is a small part of one of them."""

SETS = (*_PLAIN, *_TRAINING, *_SERVING, *_DATA, *_OLD, *_RULES, *_IMPOSSIBLE, *_FOUND)
