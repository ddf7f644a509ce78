package turns

import (
	"testing"

	"pgregory.net/rapid"
)

func TestClientsMoveEqualBytesWhateverTheyAskFor(t *testing.T) {
	turns := New(Limits{Bytes: 64 << 20, Active: 2})
	costs := map[Client]int64{"large": 16 << 20, "medium": 1 << 20, "small": 64 << 10}
	moved := map[Client]int64{}
	for c, cost := range costs {
		for range 2 + quantum/cost { // so many are under way that the client never has none
			turns.Add(c, Ask{Cost: cost, Counted: true})
		}
	}
	var going []*Turn
	for range 20_000 {
		for {
			turn, ok := turns.Next()
			if !ok {
				break
			}
			going = append(going, turn)
		}
		first := going[0]
		going = going[1:]
		c := first.of.client
		moved[c] += first.Cost
		turns.Done(first)
		turns.Add(c, Ask{Cost: costs[c], Counted: true})
	}
	for c, n := range moved {
		if least := moved["large"] * 9 / 10; n < least || n > moved["large"]*11/10 {
			t.Errorf("%v moved %d bytes, large %d", c, n, moved["large"])
		}
	}
}

func TestMemoryIsDividedAmongClients(t *testing.T) {
	turns := New(Limits{Bytes: 8 << 20, Active: 99})
	for c := range 16 {
		turns.Add(c, Ask{Cost: 1, Want: 6 << 20, Least: 64 << 10, Registered: true})
	}
	var going []*Turn
	for range 16 {
		turn, ok := turns.Next()
		if !ok {
			t.Fatalf("only %d of 16 began", len(going))
		}
		if turn.Bytes != 512<<10 {
			t.Errorf("%d bytes of memory", turn.Bytes)
		}
		going = append(going, turn)
	}
	for _, turn := range going {
		turns.Done(turn)
	}
	if turns.Used() != 0 || len(turns.clients) != 0 {
		t.Errorf("%d bytes and %d clients are left", turns.Used(), len(turns.clients))
	}
}

// Slow clients that register nothing leave all that may be registered to the others.
func TestOnlyWhatIsRegisteredTakesTheBudget(t *testing.T) {
	turns := New(Limits{Bytes: 8 << 20, ClientBytes: 4 << 20, Active: 4})
	for c := range 100 {
		turns.Add(c, Ask{Cost: 1 << 20, Want: 4 << 20, Least: 1 << 20})
		if turn, ok := turns.Next(); !ok || turn.Bytes != 4<<20 {
			t.Fatalf("transfer %d that registers nothing: %+v, %v", c, turn, ok)
		}
	}
	turns.Add(0, Ask{Cost: 1 << 20, Want: 1})
	if turn, ok := turns.Next(); ok {
		t.Errorf("a client has %d bytes more than it may", turn.Bytes)
	}
	turns.Add("registers", Ask{Cost: 1 << 20, Want: 8 << 20, Least: 1 << 20, Registered: true})
	if turn, ok := turns.Next(); !ok || turn.Bytes != 8<<20 || turns.Used() != 8<<20 {
		t.Errorf("%+v, %v; %d bytes are used", turn, ok, turns.Used())
	}
}

func TestLargeTransferIsNotPassedForEver(t *testing.T) {
	turns := New(Limits{Bytes: 4, Active: 99})
	turns.Add("a", Ask{Cost: 1, Want: 3, Least: 3, Registered: true})
	a, _ := turns.Next()
	turns.Add("large", Ask{Cost: 1, Want: 4, Least: 4, Registered: true})
	if _, ok := turns.Next(); ok {
		t.Fatal("there is no room")
	}
	turns.Add("small", Ask{Cost: 1, Want: 1, Least: 1, Registered: true})
	if turn, ok := turns.Next(); ok && turn.of.client == "small" {
		// It may pass once, by the round; never as long as it likes.
		turns.Add("small", Ask{Cost: 1, Want: 1, Least: 1, Registered: true})
		turns.Done(turn)
		if turn, ok := turns.Next(); ok {
			t.Fatalf("%v passed again", turn.of.client)
		}
	}
	turns.Done(a)
	if turn, ok := turns.Next(); !ok || turn.of.client != "large" {
		t.Errorf("%+v, %v", turn, ok)
	}
}

func TestLimitsHoldAndNobodyIsForgotten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limits := Limits{Bytes: rapid.Int64Range(1, 100).Draw(t, "bytes"), Active: rapid.IntRange(1, 4).Draw(t, "active"),
			ClientBytes: rapid.Int64Range(1, 100).Draw(t, "of a client")}
		turns := New(limits)
		waiting, going := map[*Turn]bool{}, []*Turn{}
		t.Repeat(map[string]func(*rapid.T){
			"add": func(t *rapid.T) {
				a := Ask{Cost: rapid.Int64Range(0, 5<<20).Draw(t, "cost"), Want: rapid.Int64Range(0, 200).Draw(t, "want"),
					Counted: rapid.Bool().Draw(t, "counted"), Registered: rapid.Bool().Draw(t, "registered")}
				a.Least = rapid.Int64Range(0, 200).Draw(t, "least")
				waiting[turns.Add(rapid.IntRange(1, 5).Draw(t, "client"), a)] = true
			},
			"next": func(t *rapid.T) {
				if turn, ok := turns.Next(); ok {
					if !waiting[turn] {
						t.Fatal("a turn that does not wait")
					}
					delete(waiting, turn)
					going = append(going, turn)
				} else if len(going) == 0 && len(waiting) > 0 {
					t.Fatal("nothing goes on, and nothing begins")
				}
			},
			"done": func(t *rapid.T) {
				if len(going) > 0 {
					turns.Done(going[0])
					going = going[1:]
				}
			},
			"cancel": func(t *rapid.T) {
				for turn := range waiting {
					if !turns.Cancel(turn) {
						t.Fatal("it waits")
					}
					delete(waiting, turn)
					break
				}
			},
			"": func(t *rapid.T) {
				var bytes int64
				of, active, all := map[Client][]int64{}, 0, map[Client]int{}
				for turn := range waiting {
					all[turn.of.client]++
				}
				for _, turn := range going {
					all[turn.of.client]++
					least := min(turn.Least, turn.Want)
					if turn.Registered {
						bytes += turn.Bytes
						least = min(least, limits.Bytes)
					}
					of[turn.of.client] = append(of[turn.of.client], turn.Bytes)
					if turn.Counted {
						active++
					}
					if turn.Bytes < least {
						t.Fatal("less than the least")
					}
				}
				for c := range 6 {
					if turns.Of(c) != all[c] {
						t.Fatalf("a client has %d transfers, not %d", all[c], turns.Of(c))
					}
				}
				for _, has := range of {
					var sum, most int64
					for _, n := range has {
						sum, most = sum+n, max(most, n)
					}
					if sum > max(limits.ClientBytes, most) {
						t.Fatalf("a client has %v of %d bytes", has, limits.ClientBytes)
					}
				}
				if bytes != turns.Used() || bytes > limits.Bytes || active > limits.Active {
					t.Fatalf("%d bytes of %d, used %d; %d active of %d", bytes, limits.Bytes, turns.Used(), active, limits.Active)
				}
			},
		})
	})
}
