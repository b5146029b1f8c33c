"""What goes in and out over HTTP: the shapes of requests and answers, and their documentation."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, StringConstraints

from bothends.documents import DocumentFormat
from bothends.errors import UsageError
from bothends.search.options import LARGEST_LENGTH_PENALTY
from bothends.translating.translation import TranslationOptions

_DEFAULTS = TranslationOptions()
#: Lone surrogates and the like never come through JSON or form data; this documents the rest.
Word = Annotated[str, StringConstraints(min_length=1, max_length=200)]
Code = Annotated[str, StringConstraints(max_length=64)]


class Body(BaseModel):
    """A request. A name that is not known is an error: it may be an option that was misspelled."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class LibreTranslateRequest(BaseModel):
    """As LibreTranslate has it; names that are not known are left alone, as it does."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    q: str | list[str] = Field(description="A text, or several.")
    source: Code = Field(
        "auto", description="Language code, such as `en` or `en-US`; `auto` detects it."
    )
    target: Code = Field(description="Language code, such as `pt` or `pt-BR`.")
    format: Annotated[
        Literal["text", "html", "markdown", "srt", "vtt"],
        BeforeValidator(lambda value: value or "text"),  # "" and null, as LibreTranslate does
    ] = "text"
    alternatives: int = Field(0, ge=0, le=15, description="Other translations of each text.")
    api_key: str | None = Field(None, max_length=200)


class DetectRequest(BaseModel):
    """As LibreTranslate has it."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    q: str = Field(description="A text.")
    api_key: str | None = Field(None, max_length=200)


class V1Request(Body):
    """A request with everything that a search can be told."""

    text: str | list[str] = Field(description="A text, or several.")
    model: Code | None = Field(None, description="By name; else the first for the languages.")
    source: Code | None = Field(None, description="Language code, such as `en` or `en-US`.")
    target: Code | None = Field(None, description="Language code, such as `pt` or `pt-BR`.")
    format: DocumentFormat = Field(
        "text", description="`lines` takes each line as a sentence; others are documents."
    )
    beam: int = Field(
        _DEFAULTS.beam,
        ge=1,
        le=256,
        description="1 is greedy search. The default is less if the server allows less.",
    )
    n_best: int = Field(1, ge=1, le=256, description="Hypotheses of each sentence.")
    length_penalty: float = Field(_DEFAULTS.length_penalty, ge=0, le=LARGEST_LENGTH_PENALTY)
    normalisation: Literal["google", "mean"] = _DEFAULTS.normalisation
    min_length: int = Field(0, ge=0, le=10_000)
    max_length: int | None = Field(None, ge=1, le=10_000)
    deduplicate: bool | None = Field(
        None, description="Drop repeated words; by default only where two strands meet."
    )
    glossary: dict[Word, Word] = Field(
        default_factory=dict, max_length=1000, description="Terms and the words to use for them."
    )
    draft: list[str] = Field(
        default_factory=list,
        max_length=2000,
        description="With beam 1: the translations of the text's sentences before it was edited. "
        "What would be written again is kept, and the answer is the same.",
    )
    stream: bool = Field(False, description="Answer with server-sent events, step by step.")

    @property
    def texts(self) -> list[str]:
        return [self.text] if isinstance(self.text, str) else self.text

    def options(self, widest: int) -> TranslationOptions:
        """The options of the search; a UsageError if they do not go together, or want a wider beam
        than the server allows."""
        beam = self.beam if "beam" in self.model_fields_set else min(self.beam, widest)
        if beam > widest:
            raise UsageError(f"beam {beam}: this server allows {widest}")
        if self.draft and beam != 1:
            raise UsageError(f"a draft is for greedy search: use beam 1, not {beam}")
        return TranslationOptions(
            beam=beam,
            n_best=self.n_best,
            length_penalty=self.length_penalty,
            normalisation=self.normalisation,
            min_length=self.min_length,
            max_length=self.max_length,
            deduplicate=self.deduplicate,
        )


class AlternativesRequest(Body):
    """Other ways to say a part of a translation."""

    source: str = Field(description="The sentence that was translated.")
    translation: str = Field(description="Its translation.")
    start: int = Field(ge=0, description="Where the part begins, in characters.")
    end: int = Field(ge=1, description="Where it ends.")
    n_best: int = Field(5, ge=1, le=16)
    model: Code | None = None


class V1Hypothesis(BaseModel):
    text: str
    score: float
    logprob: float
    tokens: list[int]
    pieces: list[str]
    steps: int = Field(description="Decoder steps.")
    steps_saved: int = Field(description="Steps fewer than without a draft.")
    written_in: list[int] = Field(description="The step that wrote each token; empty if unknown.")
    towards: list[Literal["right", "left"]] = Field(
        description="Where the strand of each token grows; empty if unknown."
    )
    finished: bool = Field(description="False if it was cut at the length limit.")


class Sentence(V1Hypothesis):
    source: str
    source_pieces: list[str]
    truncated: bool = Field(description="True if it was too long, and its end is not translated.")
    short: bool = Field(
        description="True if it is much shorter than its source: it may lack a part."
    )
    seconds: float = Field(description="Time of its batch, which it may have shared.")
    hypotheses: list[V1Hypothesis] = Field(description="The `n_best`, this one first.")


class Result(BaseModel):
    text: str
    sentences: list[Sentence]
    report: dict[str, Any] = Field(description="Counts of what happened to the document.")


class V1Response(BaseModel):
    model: str
    order: str
    engine_seconds: float = Field(description="Sum over the batches of this request's sentences.")
    seconds: float = Field(description="From acceptance to answer.")
    results: list[Result]


class Alternative(BaseModel):
    text: str = Field(description="The whole translation.")
    start: int = Field(description="Where the new part begins in it.")
    end: int
    score: float


class AlternativesResponse(BaseModel):
    model: str
    alternatives: list[Alternative]


class DetectedLanguage(BaseModel):
    confidence: float = Field(description="In percent.")
    language: str


class LibreTranslateResponse(BaseModel):
    translatedText: str | list[str]  # noqa: N815 (LibreTranslate's name)
    alternatives: list[str] | list[list[str]] | None = None
    detectedLanguage: DetectedLanguage | list[DetectedLanguage] | None = Field(  # noqa: N815
        None, description="With the source `auto`, where it can be told."
    )


class Language(BaseModel):
    code: str
    name: str
    targets: list[str]


class ModelInfo(BaseModel):
    name: str
    order: str
    source: str | None
    target: str | None
    task: str
    loaded: bool
    bytes: int


class Problem(BaseModel):
    error: str
