package oauth

import (
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"agentsite/node/acts"
	"agentsite/transport/web/outbound"
)

// maxArrivals bounds what is remembered of strangers.
const maxArrivals = 16

// arrivals are the last steps of programs that sign in, one for each step and network, the oldest first. An owner's
// look from a network stands beside what other programs did there.
type arrivals struct {
	mu  sync.Mutex
	all []arrival
}

type arrival struct {
	acts.PublicStep
	look bool // of an owner, as the request says
}

// change has do change the last entry of a step, network and kind, or a new one, which becomes the newest. It reports
// whether there was none.
func (a *arrivals) change(at arrival, do func(*acts.PublicStep)) (first bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if i := slices.IndexFunc(a.all, func(o arrival) bool {
		return o.Step == at.Step && o.From == at.From && o.look == at.look
	}); i >= 0 {
		at = a.all[i]
		a.all = slices.Delete(a.all, i, i+1)
	} else if first = true; len(a.all) == maxArrivals {
		a.all = slices.Delete(a.all, 0, 1)
	}
	do(&at.PublicStep)
	a.all = append(a.all, at)
	return first
}

func (s *Server) changeArrival(r *http.Request, do func(*acts.PublicStep)) (first bool) {
	return s.arrivals.change(arrival{
		acts.PublicStep{Step: stepOf(r), From: network(r).Addr().String()}, r.UserAgent() == outbound.LookAgent,
	}, do)
}

// arrived notes that a step of a sign-in begins.
func (s *Server) arrived(r *http.Request) {
	now, _ := s.Access.Now()
	program := cleanName(r.UserAgent())
	first := s.changeArrival(r, func(a *acts.PublicStep) { a.At, a.Client, a.Err = now.UTC().Truncate(time.Second), program, "" })
	if first && s.logged.Allow("all") {
		slog.Info("a program comes to sign in", "step", stepOf(r), "from", network(r), "program", program)
	}
}

// named notes what the client of a step calls itself.
func (s *Server) named(r *http.Request, client string) {
	s.changeArrival(r, func(a *acts.PublicStep) { a.Client = client })
}

// refused notes why a step was refused.
func (s *Server) refused(r *http.Request, why string) {
	s.changeArrival(r, func(a *acts.PublicStep) { a.Err = why })
}

// stepOf returns the path of a step, which is one for all descriptions.
func stepOf(r *http.Request) string {
	if strings.Contains(r.URL.Path, wellKnown) {
		return wellKnown
	}
	step, _, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	return "/" + step
}

// Arrivals lists the last steps of programs that sign in, or try to, the oldest first.
func (s *Server) Arrivals() (all []acts.PublicStep) {
	s.arrivals.mu.Lock()
	defer s.arrivals.mu.Unlock()
	for _, a := range s.arrivals.all {
		all = append(all, a.PublicStep)
	}
	return all
}
