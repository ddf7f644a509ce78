package predictor

// tokens bound what wrong predictions may cost. Each late need takes one, and every need earns a
// little. Without tokens only contexts are trusted that have proved right so often in a row.
type tokens struct{ left float64 }

const (
	mostTokens    = 64
	tokensPerNeed = 0.004
	provenHits    = 8
)

func newTokens() tokens { return tokens{mostTokens} }

func (t *tokens) observe(late bool) {
	t.left = min(t.left+tokensPerNeed, mostTokens)
	if late {
		t.left = max(t.left-1, 0)
	}
}

func (t *tokens) spent() bool { return t.left < 1 }
