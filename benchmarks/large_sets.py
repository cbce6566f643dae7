"""Two real sets of more than 300 distributions that resolve from wheels alone."""

from __future__ import annotations

LARGE = (
    "apache-airflow[google,amazon,postgres,celery,cncf-kubernetes]==3.3.2",
    "apache-airflow-providers-google==22.8.0",
    "apache-airflow-providers-amazon==9.39.0",
    "ray[default,serve,tune]==2.60.0",
    "mlflow==3.17.2",
    "jupyterlab==4.6.6",
    "langchain==1.4.7",
    "langchain-openai==1.7.3",
    "chromadb==1.5.9",
)
"""A data platform, with what it is made of pinned, as most teams write it down: 416 distributions when it was chosen.

Without the pins pip-compile, PDM and Poetry gave no answer in three minutes, so there would be little to compare.
"""

SERVER = (
    "vllm==0.22.1",
    "ray[default,serve,tune]==2.60.0",
    "mlflow==3.17.2",
    "wandb==0.31.0",
    "jupyterlab==4.6.6",
    "langchain==1.4.7",
    "langchain-openai==1.7.3",
    "chromadb==1.5.9",
    "streamlit==1.67.0",
    "gradio==6.17.3",
    "dask[complete]==2026.8.0",
    "s3fs==2026.9.0",
)
"""A model server's image, its main packages pinned: 380 distributions when it was chosen, PyTorch for CUDA 13 among them."""
