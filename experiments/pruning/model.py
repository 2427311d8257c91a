"""A BERT encoder whose heads and tokens can be removed, with two small readers on every layer."""

import math
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

HIDDEN = 32  # of an exit head and of a token-importance predictor


class Layer(nn.Module):
    """One layer, its parameters named as in Hugging Face's BertModel."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        super().__init__()
        width, wide = config["hidden_size"], config["intermediate_size"]
        self.heads = config["num_attention_heads"]
        self.drop = config["hidden_dropout_prob"]
        self.attention = nn.ModuleDict(
            {
                "self": nn.ModuleDict(
                    {name: nn.Linear(width, width) for name in ("query", "key", "value")}
                ),
                "output": _dense_and_norm(width, width),
            }
        )
        self.intermediate = nn.ModuleDict({"dense": nn.Linear(width, wide)})
        self.output = _dense_and_norm(wide, width)

    def forward(self, states: Tensor, keep: Tensor, gate: Tensor | None) -> Tensor:
        """``states``: (batch, tokens, width); ``keep``: (batch, tokens), False for what is gone.

        ``gate``: (batch or 1, heads), the factor on the output of each head.
        """
        batch, tokens, width = states.shape
        drop = self.drop if self.training else 0.0
        query, key, value = (
            self.attention["self"][name](states).view(batch, tokens, self.heads, -1).transpose(1, 2)
            for name in ("query", "key", "value")
        )
        mixed = functional.scaled_dot_product_attention(
            query, key, value, attn_mask=keep[:, None, None, :], dropout_p=drop
        )
        if gate is not None:
            mixed = mixed * gate[:, :, None, None].to(mixed.dtype)
        mixed = mixed.transpose(1, 2).reshape(batch, tokens, width)
        after = self.attention["output"]
        mixed = functional.dropout(after["dense"](mixed), drop)
        states = after["LayerNorm"](states + mixed)
        wide = functional.gelu(self.intermediate["dense"](states))
        narrow = functional.dropout(self.output["dense"](wide), drop)
        return self.output["LayerNorm"](states + narrow)


def _dense_and_norm(inputs: int, outputs: int) -> nn.ModuleDict:
    dense, norm = nn.Linear(inputs, outputs), nn.LayerNorm(outputs, eps=1e-12)
    return nn.ModuleDict({"dense": dense, "LayerNorm": norm})


class Encoder(nn.Module):
    """Reads the weights of a BertModel: ``load_state_dict(weights)``."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        super().__init__()
        width = config["hidden_size"]
        self.drop = config["hidden_dropout_prob"]
        self.embeddings = nn.ModuleDict(
            {
                "word_embeddings": nn.Embedding(config["vocab_size"], width),
                "position_embeddings": nn.Embedding(config["max_position_embeddings"], width),
                "token_type_embeddings": nn.Embedding(config["type_vocab_size"], width),
                "LayerNorm": nn.LayerNorm(width, eps=1e-12),
            }
        )
        layers = (Layer(config) for _ in range(config["num_hidden_layers"]))
        self.encoder = nn.ModuleDict({"layer": nn.ModuleList(layers)})

    @property
    def layers(self) -> nn.ModuleList:
        return self.encoder["layer"]

    def embed(self, ids: Tensor) -> Tensor:
        """``ids``: (batch, tokens). Returns (batch, tokens, width)."""
        parts = self.embeddings
        places = torch.arange(ids.shape[1], device=ids.device)
        total = parts["word_embeddings"](ids) + parts["position_embeddings"](places)
        total = total + parts["token_type_embeddings"].weight[0]
        drop = self.drop if self.training else 0.0
        return functional.dropout(parts["LayerNorm"](total), drop)

    def forward(self, ids: Tensor, keep: Tensor, gates: Tensor | None = None) -> list[Tensor]:
        """The states after each layer. ``gates``: (batch or 1, layers, heads)."""
        states, after = self.embed(ids), []
        for index, layer in enumerate(self.layers):
            states = layer(states, keep, None if gates is None else gates[:, index])
            after.append(states)
        return after


class Readers(nn.Module):
    """For each of the first ``layers`` layers, a 2-layer network on the states up to that layer.

    The first linear map of all readers is one matrix, blocks of which are held at zero: what layer
    k adds to the hidden values of reader l >= k needs only the states after layer k.
    """

    def __init__(self, layers: int, width: int, outputs: int) -> None:
        super().__init__()
        self.layers, self.width = layers, width
        seen = torch.tril(torch.ones(layers, layers)).T  # (source k, reader l): k <= l
        bound = 1 / torch.sqrt(width * torch.arange(1, layers + 1))[:, None]
        mask = seen[:, None, :, None].expand(layers, width, layers, HIDDEN)
        self.register_buffer("mask", mask.clone(), persistent=False)
        self.first = nn.Parameter((2 * torch.rand(mask.shape) - 1) * bound)
        self.first_bias = nn.Parameter((2 * torch.rand(layers, HIDDEN) - 1) * bound)
        small = 1 / math.sqrt(HIDDEN)
        self.second = nn.Parameter((2 * torch.rand(layers, HIDDEN, outputs) - 1) * small)
        self.second_bias = nn.Parameter(torch.zeros(layers, outputs))

    def forward(self, states: Tensor) -> Tensor:
        """``states``: (n, layers, width). Returns (n, layers, outputs)."""
        flat = (self.first * self.mask).view(self.layers * self.width, self.layers * HIDDEN)
        hidden = (states.flatten(1) @ flat).view(-1, self.layers, HIDDEN)
        active = torch.relu(hidden + self.first_bias)
        return torch.einsum("nlh,lho->nlo", active, self.second) + self.second_bias

    def add(self, hidden: Tensor | None, states: Tensor, layer: int) -> Tensor:
        """Hidden values of readers ``layer`` and later, with what ``states`` add to them.

        ``states``: (..., width) after ``layer``; ``hidden``: what `add` gave for the layer before.
        """
        columns = self.first[layer, :, layer:].reshape(self.width, -1)
        new = (states @ columns).unflatten(-1, (self.layers - layer, HIDDEN))
        return new if hidden is None else hidden[..., 1:, :] + new

    def read(self, hidden: Tensor, layer: int) -> Tensor:
        """What reader ``layer`` says: (..., outputs)."""
        active = torch.relu(hidden[..., 0, :] + self.first_bias[layer])
        return active @ self.second[layer] + self.second_bias[layer]


class Network(nn.Module):
    """The encoder, its classifier on [CLS], and the readers of all layers but the last."""

    def __init__(self, config: Mapping[str, Any], classes: int) -> None:
        super().__init__()
        width, early = config["hidden_size"], config["num_hidden_layers"] - 1
        self.encoder = Encoder(config)
        self.classifier = nn.Linear(width, classes)
        self.exits = Readers(early, width, classes)
        self.importance = Readers(early, width, 1)


def confidence(logits: Tensor) -> Tensor:
    """The log odds of the likeliest class. ``logits``: (..., classes)."""
    top, index = logits.float().max(-1, keepdim=True)
    others = logits.float().scatter(-1, index, -torch.inf).logsumexp(-1)
    return top[..., 0] - others


@torch.no_grad()
def run_pruned(
    network: Network,
    ids: Tensor,
    keep: Tensor,
    *,
    gates: Tensor | None,
    threshold: float | None,
) -> dict[str, Tensor]:
    """A forward pass in which tokens that are predicted to matter less than ``threshold`` go.

    A token that goes after layer l is no key or value of later layers, so nothing depends on it.
    Returns ``tokens`` (layers, batch), how many enter each layer; ``confidence`` (layers - 1,
    batch); ``prediction`` (layers, batch); ``scores`` (layers - 1, batch, tokens), NaN for what
    is gone and for [CLS], which stays.
    """
    states = network.encoder.embed(ids)
    counts, scores, logits = [], [], []
    cls_hidden = token_hidden = None
    last = len(network.encoder.layers) - 1
    for index, layer in enumerate(network.encoder.layers):
        counts.append(keep.sum(1))
        states = layer(states, keep, None if gates is None else gates[:, index])
        with torch.autocast(states.device.type, enabled=False):  # what decides is in float32
            states = states.float()
            if index == last:
                logits.append(network.classifier(states[:, 0]))
                break
            cls_hidden = network.exits.add(cls_hidden, states[:, 0], index)
            logits.append(network.exits.read(cls_hidden, index))
            token_hidden = network.importance.add(token_hidden, states, index)
            score = network.importance.read(token_hidden, index)[..., 0].sigmoid()
        score[:, 0] = torch.nan
        scores.append(score.where(keep, torch.nan))
        if threshold is not None:
            keep = keep & ~(score < threshold)
    return {
        "tokens": torch.stack(counts),
        "confidence": torch.stack([confidence(some) for some in logits[:-1]]),
        "prediction": torch.stack([some.argmax(-1) for some in logits]),
        "scores": torch.stack(scores),
    }
