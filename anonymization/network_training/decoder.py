"""The trainings of decoders: spectra from content, F0 and speaker vector, or parameters of WORLD in their place.

Content is a bottleneck, with and without codes, that is learnt with the spectra and, where the recipe says so, with the
phones that are said (CTC); or soft units: what a network gives that was taught to name the unit of each frame, from
copies in other voices, too. Parameters of WORLD are learnt from the bottleneck of a decoder that has learnt.

Source of soft units: B. van Niekerk, M.-A. Carbonneau, J. Zaïdi, M. Baas, H. Seuté, H. Kamper, "A comparison of
discrete and soft speech units for improved voice conversion", ICASSP 2022, section 2; here of layers of Whisper.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Self, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from anonymization.methods.content_decoder.network_files import load_decoder
from anonymization.network_training.features import Features
from anonymization.network_training.loop import SpeechBatch, Training, TrainingSpeech
from anonymization.network_training.recipe import DecoderRecipe, NetworkRecipe, SoftUnitsRecipe, WorldDecoderRecipe
from common.arrays import unit_vectors
from common.errors import InputError
from evaluation.attackers.training.corpus import TrainingUtterance
from evaluation.recognizer_training.frames import SpokenText
from speech.conversion.content_decoder import ContentDecoder, SoftUnitsDecoder, places_of_content
from speech.conversion.world_decoder import WorldDecoder
from speech.model_files.devices import Device
from speech.recognizers.phone_recipe import FEWEST
from speech.recognizers.phones import spell_phones
from speech.vocoders.world_parameters import POINTS

VOICES = "voices.safetensors"


_FRAMES_OF_UNITS, _ROUNDS, _AT_ONCE = 40_000, 30, 8192
# Utterances of a step from which phones are learnt, and frames of 20 ms that tell one.
_UTTERANCES, _PHONE_FRAMES = 8, 5
R = TypeVar("R", bound=NetworkRecipe)


N = TypeVar("N", bound=ContentDecoder)


class SpectraTraining(Training[R, N]):
    """A decoder at a step."""

    def make_files(self, utterances: Sequence[TrainingUtterance]) -> Mapping[str, bytes]:
        """Return the voices of the speakers."""
        return {VOICES: _voices(utterances, self.features)}

    def normalize_layers(self, network: N) -> N:
        """Return the network with mean and spread of each number of the layers over the original speech."""
        count = sum(each.layers.shape[1] for each in self.features)
        mean = sum(each.layers[0].astype(np.float64).sum(axis=0) for each in self.features) / count
        squares = sum(np.square(each.layers[0].astype(np.float64) - mean).sum(axis=0) for each in self.features) / count
        network.get_buffer("mean").copy_(torch.from_numpy(mean))
        network.get_buffer("spread").copy_(torch.from_numpy(np.sqrt(squares) + 1e-3))
        return network


class SoftUnitsTraining(SpectraTraining[SoftUnitsRecipe, SoftUnitsDecoder]):
    """Decoder and soft units at a step.

    What a frame is called follows from the original alone: its nearest of some means of frames (k-means). Content is
    learnt from that alone, so that the voice helps no spectrum by way of it.
    """

    loss_names = ("spectrum", "units")

    def make_network(self) -> SoftUnitsDecoder:
        """And the units."""
        network = self.normalize_layers(SoftUnitsDecoder(self.recipe.shape))
        draw = np.random.default_rng(self.seed)
        whole = np.concatenate([each.layers[0][:: self._every()] for each in self.features])
        with torch.inference_mode():
            frames = network.normalize(torch.from_numpy(whole.astype(np.float32)))
            means = frames[torch.from_numpy(draw.choice(len(frames), self.recipe.shape.units, replace=False))]
            for _ in range(_ROUNDS):
                chosen = _nearest(frames, means)
                counts = torch.bincount(chosen, minlength=len(means))
                sums = torch.zeros_like(means).index_add_(0, chosen, frames)
                means = torch.where(counts[:, None] > 0, sums / counts.clamp_min(1)[:, None], means)
            layers = (torch.from_numpy(each.layers[0].astype(np.float32)) for each in self.features)
            self._units = [_nearest(network.normalize(each), means).numpy() for each in layers]
        return network

    def update(self, batch: SpeechBatch, draw: np.random.Generator) -> tuple[float, ...]:  # noqa: ARG002 - of others
        """Return mean absolute difference of spectra, and cross-entropy of the units."""
        with self.in_16_bits():
            content = self.network.encode(batch.layers)
            scores = self.network.name_units(content)
            spectra = self.network.decode(batch.at_spectra(content.detach()), batch.intonation, batch.speakers)
        named = functional.cross_entropy(scores.float().flatten(0, 1), self._cut_units(batch).flatten())
        difference = functional.l1_loss(spectra.float(), batch.spectra)
        self.descend(difference + named)
        return float(difference.detach()), float(named.detach())

    def _every(self) -> int:
        """Of so many frames one takes part in finding the units."""
        return max(1, sum(each.layers.shape[1] for each in self.features) // _FRAMES_OF_UNITS)

    def _cut_units(self, batch: SpeechBatch) -> Tensor:
        """Return the units of the frames of content of a batch, shape (batch, content frames)."""
        wide = batch.layers.shape[1]
        pieces = np.zeros((len(batch.origin), wide), np.int64)
        for row, (number, first) in zip(pieces, batch.origin.tolist(), strict=True):
            units = self._units[number]
            begin = int(np.clip(places_of_content(first + 1)[first], 0, len(units) - 1))
            piece = units[begin : begin + wide]
            row[:] = np.pad(piece, (0, wide - len(piece)), mode="edge")
        return torch.from_numpy(pieces).to(self.device)


def _nearest(frames: Tensor, means: Tensor) -> Tensor:
    """Return the number of the nearest mean of each frame, shape (frames,)."""
    squares = means.square().sum(dim=1)
    return torch.cat([(squares - 2 * part @ means.T).argmin(dim=1) for part in frames.split(_AT_ONCE)])


class DecoderTraining(SpectraTraining[DecoderRecipe, ContentDecoder]):
    """Decoder and codes at a step."""

    state: ClassVar = ("counts", "sums")

    def __init__(
        self,
        features: Sequence[Features],
        recipe: DecoderRecipe,
        seed: int,
        checkpoint: Path,
        key: str,
        *,
        texts: Sequence[str] = (),
        device: Device = "cpu",
    ) -> None:
        shape, self._texts = recipe.shape, texts
        self.loss_names = ("spectrum", "codes", *(("phones",) if recipe.phones else ()))
        self.counts = torch.ones(shape.stages, shape.codes, device=device)
        self.sums = torch.zeros(shape.stages, shape.codes, shape.bottleneck, device=device)
        super().__init__(features, recipe, seed, checkpoint, key, device=device)

    @classmethod
    def begin(
        cls, speech: TrainingSpeech, recipe: DecoderRecipe, seed: int, checkpoint: Path, key: str, device: Device
    ) -> Self:
        texts = [
            spell_phones(speech.texts.get(one.identifier, "")) if recipe.phones else "" for one in speech.utterances
        ]
        return cls(speech.features, recipe, seed, checkpoint, key, texts=texts, device=device)

    def make_network(self) -> ContentDecoder:
        """With mean and spread of the layers, and beside it what reads phones in the bottleneck."""
        network = self.normalize_layers(ContentDecoder(self.recipe.shape))
        if self.recipe.phones:
            self._phones = PhoneLoss(self.features, self._texts, self.recipe.shape.bottleneck).to(self.device)
            self._their_optimizer = torch.optim.AdamW(
                self._phones.parameters(), self.recipe.learning_rate, betas=self.betas
            )
        return network

    def parts(self) -> dict[str, Any]:
        """And what reads phones."""
        if not self.recipe.phones:
            return super().parts()
        return {**super().parts(), "phones": self._phones, "their_optimizer": self._their_optimizer}

    def update(self, batch: SpeechBatch, draw: np.random.Generator) -> tuple[float, ...]:
        """Return mean absolute difference of spectra, squared distance between bottleneck and codes, loss of a
        phone."""
        recipe = self.recipe
        with_codes = self.step >= recipe.warm_up
        with self.in_16_bits():
            content = self.network.encode(batch.layers)
        content = content.float()
        distance = torch.zeros((), device=self.device)
        if self.step == recipe.warm_up:
            self._find_codes(content.detach(), draw)
        if with_codes:
            sums, numbers = self.network.quantize(content.detach(), recipe.shape.stages)
            self._move_codes(content.detach(), sums, numbers, draw)
            # Each piece is described by a number of stages that is drawn for it, 0 for none at all.
            stages = torch.from_numpy(draw.integers(0, recipe.shape.stages + 1, recipe.batch)).to(self.device)
            chosen = sums[(stages - 1).clamp_min(0), torch.arange(recipe.batch, device=self.device)]
            coded = (stages > 0)[:, None, None]
            distance = (torch.where(coded, content - chosen, torch.zeros((), device=self.device))).square().mean()
            content = torch.where(coded, content + (chosen - content).detach(), content)
        with self.in_16_bits():
            spectra = self.network.decode(batch.at_spectra(content), batch.intonation, batch.speakers)
        difference = functional.l1_loss(spectra.float(), batch.spectra)
        loss = difference + recipe.commitment * distance
        if not recipe.phones:
            self.descend(loss)
            return float(difference.detach()), float(distance.detach())
        of_phones = self._phones(self.network, draw)
        self._their_optimizer.zero_grad()
        self.descend(loss + recipe.phones * of_phones)
        self._their_optimizer.step()
        return float(difference.detach()), float(distance.detach()), float(of_phones.detach())

    def _find_codes(self, content: Tensor, draw: np.random.Generator) -> None:
        """The codes of each stage: frames of what the stages before it leave, drawn."""
        rest = content.reshape(-1, content.shape[2])
        books = self.network.get_buffer("codebooks")
        for number, book in enumerate(books):
            chosen = draw.choice(len(rest), len(book), replace=len(rest) < len(book))
            book.copy_(rest[torch.from_numpy(chosen).to(self.device)])
            self.sums[number] = book
            nearest = (book.square().sum(dim=1) - 2 * rest @ book.T).argmin(dim=1)
            rest = rest - book[nearest]

    def _move_codes(self, content: Tensor, sums: Tensor, numbers: Tensor, draw: np.random.Generator) -> None:
        """Each code goes towards the mean of what it stands for; one that stands for hardly anything is drawn anew."""
        decay, books = self.recipe.decay, self.network.get_buffer("codebooks")
        whole = content.reshape(-1, content.shape[2])
        before = torch.cat([torch.zeros_like(sums[:1]), sums[:-1]])
        for stage, book in enumerate(books):
            rest = whole - before[stage].reshape(whole.shape)
            chosen = numbers[stage].reshape(-1)
            here = torch.bincount(chosen, minlength=len(book)).float()
            total = torch.zeros_like(book).index_add_(0, chosen, rest)
            self.counts[stage].mul_(decay).add_((1 - decay) * here)
            self.sums[stage].mul_(decay).add_((1 - decay) * total)
            rare = self.counts[stage] < 0.05 * len(rest) / len(book)
            if self.step % 50 == 0 and rare.any():
                drawn = torch.from_numpy(draw.choice(len(rest), int(rare.sum()))).to(self.device)
                self.counts[stage][rare] = len(rest) / len(book)
                self.sums[stage][rare] = rest[drawn] * self.counts[stage][rare][:, None]
            book.copy_(self.sums[stage] / self.counts[stage].clamp_min(1e-6)[:, None])


class PhoneLoss(nn.Module):
    """A layer that reads phones in the bottleneck, and the utterances on which it and the bottleneck learn.

    features, texts: of the utterances, and their phones, separated by spaces; those without, and those that CTC cannot
    align, take no part. bottleneck: numbers of a frame.

    Raises:
        InputError: fewer than 20 utterances take part.

    Source: A. Graves et al., "Connectionist temporal classification", ICML 2006.
    """

    def __init__(self, features: Sequence[Features], texts: Sequence[str], bottleneck: int) -> None:
        super().__init__()
        phones = sorted({phone for text in texts for phone in text.split()})
        places = {phone: place for place, phone in enumerate(phones, 1)}
        self._texts = {
            number: torch.tensor([places[phone] for phone in text.split()])
            for number, (one, text) in enumerate(zip(features, texts, strict=True))
            if SpokenText(str(number), one.layers[0], text).is_possible
        }
        if len(self._texts) < FEWEST:
            raise InputError(
                f"Learning from phones needs at least {FEWEST} utterances with transcripts; found {len(self._texts)} "
                f"of {len(texts)} that can be used. Give more transcripts, or set phones=0."
            )
        self._features = features
        self.layer = nn.Conv1d(bottleneck, len(places) + 1, _PHONE_FRAMES, padding=_PHONE_FRAMES // 2)

    def forward(self, network: ContentDecoder, draw: np.random.Generator) -> Tensor:
        """Return the loss of a phone, of some utterances that are drawn, each from one of its copies."""
        numbers = draw.choice(list(self._texts), min(_UTTERANCES, len(self._texts)), replace=False)
        device = self.layer.weight.device
        layers = [self._features[number].layers for number in numbers.tolist()]
        copies = [torch.from_numpy(each[draw.integers(len(each))].astype(np.float32)) for each in layers]
        content = network.encode(nn.utils.rnn.pad_sequence(copies, batch_first=True).to(device))
        scores = self.layer(content.transpose(1, 2)).transpose(1, 2).log_softmax(dim=2)
        texts = [self._texts[number] for number in numbers.tolist()]
        sizes = torch.tensor([len(text) for text in texts])
        lengths = torch.tensor([len(each) for each in copies])
        # The loss is computed on the processor: on a card it would differ from run to run.
        summed = functional.ctc_loss(
            scores.transpose(0, 1).float().cpu(), torch.cat(texts), lengths, sizes, reduction="sum"
        )
        return (summed / sizes.sum()).to(device)


class WorldDecoderTraining(Training[WorldDecoderRecipe, WorldDecoder]):
    """The decoder to parameters of WORLD at a step. decoder: whose bottleneck is read."""

    loss_names = ("envelope", "aperiodicity")

    def __init__(self, *args: Any, decoder: ContentDecoder, device: Device = "cpu", **others: Any) -> None:
        self._decoder = decoder.to(device).eval()
        super().__init__(*args, device=device, **others)

    @classmethod
    def begin(
        cls, speech: TrainingSpeech, recipe: WorldDecoderRecipe, seed: int, checkpoint: Path, key: str, device: Device
    ) -> Self:
        decoder = load_decoder(speech.decoder)
        recipe = recipe.fit(decoder.shape)
        return cls(speech.features, recipe, seed, checkpoint, key, decoder=decoder, device=device)

    def make_network(self) -> WorldDecoder:
        return WorldDecoder(self.recipe.shape)

    def update(self, batch: SpeechBatch, draw: np.random.Generator) -> tuple[float, ...]:  # noqa: ARG002 - of others
        """Return mean absolute differences of logarithms of envelopes and of aperiodicity."""
        with torch.no_grad():
            content = batch.at_spectra(self._decoder.encode(batch.layers))
        with self.in_16_bits():
            made = self.network(content, batch.intonation, batch.speakers)
        differences = (made.float() - batch.spectra).abs()
        envelope, aperiodicity = differences[..., :POINTS].mean(), differences[..., POINTS:].mean()
        self.descend(envelope + aperiodicity)
        return float(envelope.detach()), float(aperiodicity.detach())


def _voices(utterances: Sequence[TrainingUtterance], features: Sequence[Features]) -> bytes:
    """Return vector, mean and spread of the logarithm of F0 of each speaker, with names and genders in the header."""
    from safetensors.numpy import save

    by_speaker: dict[str, list[Features]] = defaultdict(list)
    for utterance, one in zip(utterances, features, strict=True):
        by_speaker[utterance.source].append(one)
    names = sorted(by_speaker)
    vectors = np.stack([np.mean([each.vector for each in by_speaker[name]], axis=0) for name in names])
    logs = [np.log(np.concatenate([each.hz for each in by_speaker[name]]).astype(np.float64)) for name in names]
    contours = [(float(each.mean()), float(each.std())) if each.size else (0.0, 0.0) for each in logs]
    genders = {one.source: one.gender for one in utterances}
    header = {"names": " ".join(names), "genders": " ".join(genders[name] or "-" for name in names)}
    tensors: dict[str, NDArray[Any]] = {
        "vectors": unit_vectors(vectors, "vectors of speakers").astype(np.float16),
        "f0": np.array(contours, np.float32),
    }
    return save(tensors, metadata=header)
