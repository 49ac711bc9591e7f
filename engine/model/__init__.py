"""The model: families as data, weights from safetensors, and the decoder built of them."""

from engine.model.decoder import Decoder
from engine.model.families import ModelError, ModelShape, read_shape
from engine.model.loading import load_decoder

__all__ = ["Decoder", "ModelError", "ModelShape", "load_decoder", "read_shape"]
