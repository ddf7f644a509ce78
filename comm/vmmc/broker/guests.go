package broker

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"sync"
	"time"

	"pinwheel/comm/vmmc/internal/identity"
)

// A ticket is good for one connection to an exporter, through the port of its node's broker. The id says which one.
// It is no secret, as it goes ahead of TLS; the key of both ends is.
type ticket struct {
	to      *exporter
	from    Origin
	secret  string
	expires time.Time
}

const (
	idBytes    = 16
	ticketLife = 10 * time.Second
)

// A guest is a user of another node. It has a place for each of its dials that waits for an exporter, for each ticket
// that it has not used, and for each connection that the exporter has not taken yet. So no user takes the places of all
// others.
const (
	maxOfGuest = 256
	maxGuests  = 4096
)

// guests are the places that are taken. All methods are safe for concurrent use.
type guests struct {
	mu      sync.Mutex
	all     int
	of      map[Origin]int
	tickets map[string]ticket
}

// enter takes a place.
func (g *guests) enter(o Origin) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	for id, t := range g.tickets {
		if time.Now().After(t.expires) {
			delete(g.tickets, id)
			g.drop(t.from)
		}
	}
	if g.all >= maxGuests || g.of[o] >= maxOfGuest {
		return fmt.Errorf("%d connections from other nodes are being made, %d of them of user %d of node %q",
			g.all, g.of[o], o.UID, o.Node)
	}
	g.all++
	g.of[o]++
	return nil
}

// leave gives a place back.
func (g *guests) leave(o Origin) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.drop(o)
}

func (g *guests) drop(o Origin) {
	g.all--
	if g.of[o]--; g.of[o] == 0 {
		delete(g.of, o)
	}
}

// ticket makes a ticket for a guest, which has a place until it is redeemed or has expired.
func (g *guests) ticket(to *exporter, o Origin) (id, secret string) {
	number, key := make([]byte, idBytes), make([]byte, identity.MinToken)
	rand.Read(number)
	rand.Read(key)
	id, secret = hex.EncodeToString(number), hex.EncodeToString(key)
	g.mu.Lock()
	defer g.mu.Unlock()
	g.tickets[id] = ticket{to: to, from: o, secret: secret, expires: time.Now().Add(ticketLife)}
	return id, secret
}

// redeem takes a ticket, once. If it is good, whoever has it gives its place back.
func (g *guests) redeem(id string) (t ticket, ok bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if t, ok = g.tickets[id]; !ok {
		return t, false
	}
	delete(g.tickets, id)
	if !time.Now().Before(t.expires) {
		g.drop(t.from)
		return t, false
	}
	return t, true
}
