"""RemoteAccounts: what this server knows of a remote engine's work, in the shape of our own engine's gauges.

Counts are of this server's requests alone: others may use the engine too. Blocks are computed from tokens, as if the
engine shared nothing. What only the engine could time (steps, prefills) stays zero, so no first token is predicted.
Each request's share is kept with it, so that a snapshot costs the same however many are open.
"""

from tidegate.engine.gauges import EngineGauges
from tidegate.engines.remote.route import NO_SHARE, Route, Share
from tidegate.inference.model_info import ModelInfo
from tidegate.inference.output import TokenDelta


class RemoteAccounts:
    """Counters run since the start of the server process. `block_tokens` is the model's, once it is known."""

    def __init__(self) -> None:
        self.block_tokens = 1
        self._total = NO_SHARE
        self._num_deltas = 0
        self._num_prompt_tokens = 0
        self._num_cached_tokens = 0
        self._num_output_tokens = 0

    def note_submitted(self, route: Route) -> None:
        self._num_prompt_tokens += route.request.num_prompt_tokens
        self.refresh(route)

    def note_delta(self, route: Route, delta: TokenDelta) -> None:
        self._num_deltas += 1
        self._num_cached_tokens += delta.num_cached_tokens
        self._num_output_tokens += len(delta.token_ids)
        self.refresh(route)

    def note_closed(self, route: Route) -> None:
        self._replace(route, NO_SHARE)

    def refresh(self, route: Route) -> None:
        """Counts a request as it is now. Its choices wait until it has output, unless it is held."""
        num_open = len(route.open_choices)
        blocks = 0
        if route.has_output:
            size = self.block_tokens
            blocks = -(-route.request.num_prompt_tokens // size)
            blocks += sum(-(-route.num_tokens[choice] // size) for choice in route.open_choices)
        self._replace(
            route,
            Share(
                waiting=0 if route.is_held or route.has_output else num_open,
                running=num_open if route.has_output and not route.is_held else 0,
                held=num_open if route.is_held else 0,
                constrained=num_open if route.request.grammar is not None else 0,
                blocks=blocks,
            ),
        )

    def gauges(self, model: ModelInfo | None) -> EngineGauges:
        """Returns the present accounts."""
        total, num_blocks = self._total, 0 if model is None else model.num_blocks
        return EngineGauges(
            num_waiting=total.waiting,
            num_running=total.running,
            num_held=total.held,
            blocks_free=max(0, num_blocks - total.blocks),
            blocks_used=min(total.blocks, num_blocks),
            num_steps=self._num_deltas,
            num_prompt_tokens=self._num_prompt_tokens,
            num_cached_tokens=self._num_cached_tokens,
            num_output_tokens=self._num_output_tokens,
            num_constrained=total.constrained,
        )

    def _replace(self, route: Route, share: Share) -> None:
        if share != route.share:
            before, self_total = route.share, self._total
            self._total = Share(*(total - old + new for total, old, new in zip(self_total, before, share, strict=True)))
            route.share = share
