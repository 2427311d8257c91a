"""The same data and weights from the Hugging Face hub, for machines that can reach it."""

from typing import Any

from datasets import Dataset, load_dataset
from tokenizers import Tokenizer
from torch import Tensor
from transformers import AutoTokenizer, BertModel

from experiments.pruning.ag_news import Text, clean

ENCODER = "BAAI/bge-small-en-v1.5"


def fetch_texts() -> tuple[list[Text], list[Text]]:
    news = load_dataset("fancyzhx/ag_news")
    return _texts(news["train"]), _texts(news["test"])


def _texts(rows: Dataset) -> list[Text]:
    return [(row["label"], clean(row["text"])) for row in rows]


def fetch_encoder() -> tuple[dict[str, Any], dict[str, Tensor], Tokenizer]:
    """The shape of the encoder, its weights by their BertModel names, and its tokenizer."""
    model = BertModel.from_pretrained(ENCODER, add_pooling_layer=False)
    tokenizer = AutoTokenizer.from_pretrained(ENCODER).backend_tokenizer
    return model.config.to_dict(), model.state_dict(), tokenizer
