"""Requirement sets that people really write, for comparing resolvers: easy ones, large ones, and ones that cannot be met."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RequirementSet:
    """A wish for one environment. `why` explains a known difference between the answers of different resolvers."""

    name: str
    requirements: tuple[str, ...]
    python: str = "3.12"
    why: str = ""


SETS = (
    RequirementSet("numpy", ("numpy",)),
    RequirementSet("requests with an extra", ("requests[socks]>=2.31",), "3.11"),
    RequirementSet("web service", ("fastapi[standard]", "sqlalchemy[asyncio]>=2", "alembic", "httpx[http2]")),
    RequirementSet("notebooks", ("pandas", "scikit-learn", "matplotlib", "jupyterlab", "ipywidgets")),
    RequirementSet(
        "markers", ("tomli; python_version < '3.11'", "uvloop; sys_platform != 'win32'", "rich; extra == 'x'", "attrs")
    ),
    RequirementSet("old numpy", ("numpy<2", "pandas", "scipy", "numba"), "3.11"),
    RequirementSet("torch", ("torch",)),
    RequirementSet(
        "torch 2.7.1",
        ("torch==2.7.1", "torchvision", "torchaudio"),
        why="torchaudio declares no torch requirement, so by its metadata any release goes with any torch; the matrix knows "
        "from the wheel itself which one it calls.",
    ),
    RequirementSet("torch 2.6", ("torch==2.6.0", "torchvision==0.21.0", "torchaudio==2.6.0", "xformers"), "3.11"),
    RequirementSet("transformers", ("transformers",)),
    RequirementSet("fine-tuning", ("transformers[torch]", "peft", "bitsandbytes", "datasets", "trl")),
    RequirementSet("lightning", ("lightning", "torchmetrics", "tensorboard", "hydra-core"), "3.11"),
    RequirementSet("diffusers", ("diffusers[torch]", "transformers", "safetensors", "opencv-python-headless")),
    RequirementSet("embeddings", ("sentence-transformers", "faiss-cpu", "langchain", "langchain-openai", "chromadb")),
    RequirementSet("vision", ("timm", "open-clip-torch", "albumentations", "ultralytics"), "3.11"),
    RequirementSet(
        "vllm",
        ("vllm",),
        why="The newest cuda-python needs cuda-bindings ~=13.4.4, so the newest of both cannot be had: provision keeps the "
        "newer cuda-python; uv takes cuda-bindings 13.5.0 and falls back to cuda-python 12.6.2, which does not depend on "
        "it yet.",
    ),
    RequirementSet("vllm 0.8.5", ("vllm==0.8.5",), "3.11"),
    RequirementSet("jax", ("jax[cuda12]", "flax", "optax")),
    RequirementSet("tensorflow", ("tensorflow[and-cuda]", "keras"), "3.11"),
    RequirementSet("ray", ("ray[default,serve,tune]", "mlflow", "wandb")),
    RequirementSet("cloud storage", ("boto3", "s3fs", "aiobotocore", "awscli"), "3.11"),
    RequirementSet("old pydantic", ("pydantic<2", "fastapi", "langchain"), "3.11"),
    RequirementSet("task queue", ("django>=4.2,<5", "celery[redis]", "psycopg[binary]", "djangorestframework")),
    RequirementSet("workflows", ("apache-airflow==2.10.5", "apache-airflow-providers-google"), "3.11"),
    RequirementSet("demos", ("gradio", "streamlit", "altair", "plotly")),
    RequirementSet("sglang", ("sglang",)),
    RequirementSet("arrays", ("dask[complete]", "xarray[complete]", "zarr")),
    RequirementSet(
        "tabular",
        ("autogluon.tabular[all]",),
        "3.11",
        why="soupsieve 4.1.2 needs Python 3.11.5. uv takes 3.11 for 3.11.0; provision for the newest 3.11, which images hold.",
    ),
    RequirementSet("managed training", ("google-cloud-aiplatform", "kfp", "google-cloud-bigquery<3.20"), "3.11"),
    RequirementSet("language", ("spacy[cuda12x]", "gensim", "nltk")),
    RequirementSet(
        "quick fine-tuning",
        ("unsloth",),
        why="xformers on the default index links CUDA 12, and the torch that uv puts beside it is built for CUDA 13. provision "
        "refuses that pair and looks for another build of torch on PyTorch's own index, which must be in reach.",
    ),
    RequirementSet("old tensorflow", ("tensorflow==2.15.*", "tf-keras", "numpy>=1.26"), "3.11"),
    RequirementSet("pre-releases within", ("opentelemetry-instrumentation-fastapi", "opentelemetry-exporter-otlp")),
    RequirementSet("pre-release by name", ("numpy>=2.2.0rc1,<2.3", "scipy<1.16")),
    RequirementSet(
        "warehouse",
        ("dbt-core", "dbt-bigquery", "dbt-snowflake"),
        "3.11",
        why="dbt-core 1.12 needs a parser whose final releases are source distributions. uv falls back on an alpha; "
        "provision takes a pre-release only where a project has nothing else or the spec names one, and keeps dbt-core 1.11.",
    ),
    RequirementSet("speech", ("nemo-toolkit[asr]",), "3.11"),
    RequirementSet("clusters", ("pyspark[connect]==3.5.*", "delta-spark", "pandas<3"), "3.11"),
    RequirementSet("graphs", ("torch-geometric", "pytorch-lightning", "ogb", "dgl")),
    RequirementSet("framework and companion apart", ("torch==2.6.0", "torchvision==0.22.0")),
    RequirementSet("numpy before pandas", ("numpy<1.20", "pandas>=2.2")),
    RequirementSet("too new a Python", ("vllm==0.8.5",), "3.14"),
    RequirementSet(
        "source distributions only",
        ("deepspeed", "torch"),
        "3.11",
        why="deepspeed publishes source distributions, but for the pre-release 0.3.1.dev5 of 2020. uv, told to take no source "
        "distributions, falls back on that; provision takes a pre-release only where a project has nothing else or the spec "
        "names one, and says what would help.",
    ),
    RequirementSet("no such version", ("requests==99.0",)),
)
