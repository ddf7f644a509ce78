package broker

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

func TestOneGuestTakesNotAllPlaces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &newBroker(t.Context(), Options{}).guests
		greedy, modest := Origin{1000, "n"}, Origin{1001, "n"}
		for range maxOfGuest / 2 {
			if err := errors.Join(g.enter(greedy), g.enter(greedy)); err != nil {
				t.Fatal(err)
			}
			g.ticket(nil, greedy)
		}
		if err := g.enter(greedy); err == nil {
			t.Error("it takes more places than it has")
		}
		if err := g.enter(modest); err != nil {
			t.Error(err)
		}
		id, _ := g.ticket(nil, modest)
		if k, ok := g.redeem(id); !ok || k.from != modest || g.of[modest] != 1 {
			t.Errorf("%+v, %v, %d places", k, ok, g.of[modest])
		}
		if g.leave(modest); g.of[modest] != 0 || len(g.of) != 1 {
			t.Errorf("%d places after the connection was taken", g.of[modest])
		}
		if _, ok := g.redeem(id); ok {
			t.Error("a ticket was used twice")
		}
		late, _ := g.ticket(nil, greedy)
		time.Sleep(ticketLife + 1)
		g.all++ // for the ticket that had no place of its own
		g.of[greedy]++
		if _, ok := g.redeem(late); ok {
			t.Error("a ticket was used too late")
		}
		if err := g.enter(greedy); err != nil || g.of[greedy] != maxOfGuest/2+1 || g.all != maxOfGuest/2+1 {
			t.Errorf("%v; %d places of %d, after tickets have expired", err, g.of[greedy], g.all)
		}
		for g.enter(Origin{uint32(g.all), "m"}) == nil {
		}
		if g.all != maxGuests {
			t.Errorf("%d places in all", g.all)
		}
	})
}
