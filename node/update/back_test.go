package update

import (
	"bytes"
	"errors"
	"os"
	"testing"
)

// restart starts the service as its units do, and returns the program that then runs.
func restart(t testing.TB, p Programs) string {
	t.Helper()
	settle(t, p)
	back, err := p.GoBack()
	if err == nil && back == nil {
		_, err = p.Install(rules(1))
	}
	if err != nil {
		t.Fatal(err)
	}
	return runs(t, p)
}

// updated is a board with the package v1 that was updated to v2 and v3.
func updated(t testing.TB) Programs {
	t.Helper()
	p := site(t)
	for n, version := range []string{2: "v2", 3: "v3"} {
		if version != "" {
			try(t, p, version, uint64(n))
			p.Prove(uint64(n))
			settle(t, p)
		}
	}
	return p
}

func back(t testing.TB, p Programs) Program {
	t.Helper()
	to, err := p.Back()
	if err != nil {
		t.Fatal(err)
	}
	return to
}

// TestBack: the superuser goes back to v2 and then to the package's v1, and forward again. Nothing
// below the floor is accepted on the way.
func TestBack(t *testing.T) {
	p := updated(t)
	if to := back(t, p); to.Version != "v2" || runs(t, p) != "v3" {
		t.Fatalf("it will go back to %+v, and %s runs", to, runs(t, p))
	}
	if got := restart(t, p); got != "v2" {
		t.Fatalf("%s runs", got)
	}
	p.Prove(2)
	if got := restart(t, p); got != "v2" {
		t.Fatalf("%s runs after its proof", got)
	}
	if s, _ := p.State(); s.Floor != 3 || s.Trial || s.Before.Version != "v3" {
		t.Errorf("%+v", s)
	}
	try(t, p, "v3", 3) // forward
	p.Prove(3)
	settle(t, p)
	back(t, p)
	restart(t, p)
	p.Prove(2)
	restart(t, p)

	if to := back(t, p); to.Sequence != 0 { // not to v3, which is before v2 in time only
		t.Errorf("from v2 it goes back to %+v", to)
	}
	if got := restart(t, p); got != "v1" {
		t.Errorf("%s runs", got)
	}
	if _, err := p.Back(); !errors.As(err, new(Refused)) {
		t.Errorf("back from the package: %v", err)
	}
	if _, err := p.Stage(
		bytes.NewReader(signedFile(t, release("v2", 2), online)), rules(1),
	); !errors.As(err, new(Refused)) {
		t.Errorf("below the floor: %v", err)
	}
	try(t, p, "v3", 3)
}

// TestBackFails: a version before that does not prove itself, or is damaged, leaves a program that runs.
func TestBackFails(t *testing.T) {
	p := updated(t)
	back(t, p)
	if got := restart(t, p); got != "v2" {
		t.Fatal(got)
	}
	if got := restart(t, p); got != "v3" {
		t.Errorf("v2 has not proved itself, and %s runs", got)
	}

	p = updated(t)
	back(t, p)
	if err := os.WriteFile(p.path("2", linkName), program("v9"), 0o755); err != nil {
		t.Fatal(err)
	}
	settle(t, p)
	if got, err := p.GoBack(); err == nil || got != nil || runs(t, p) != "v3" {
		t.Errorf("back to a damaged one: %+v %v, and %s runs", got, err, runs(t, p))
	}
	if to := back(t, p); to.Sequence != 0 {
		t.Errorf("it chooses the damaged %+v", to)
	}
	if got := restart(t, p); got != "v1" {
		t.Errorf("%s runs", got)
	}
}

// TestLastWord: of a request to go back and an update, the superuser's later one counts. The update of
// the service's user does not outlive the request.
func TestLastWord(t *testing.T) {
	v4 := signedFile(t, release("v4", 4), online)
	p := updated(t)
	if err := os.WriteFile(p.path(inboxName, waitName), v4, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Stage(bytes.NewReader(v4), rules(1)); err != nil {
		t.Fatal(err)
	}
	back(t, p)
	if p.Waits() {
		t.Error("an update waits")
	}
	if got := restart(t, p); got != "v2" {
		t.Errorf("%s runs", got)
	}

	p = updated(t)
	back(t, p)
	if _, err := p.Stage(bytes.NewReader(v4), rules(1)); err != nil {
		t.Fatal(err)
	}
	settle(t, p)
	if got, err := p.GoBack(); got != nil || err != nil {
		t.Errorf("%+v %v", got, err)
	}
}

// TestBackOutdated: a request for a program that is not in use any more is dropped.
func TestBackOutdated(t *testing.T) {
	for _, to := range []string{"v2", ""} {
		p := updated(t)
		if to == "" { // the package's program
			if err := os.Remove(p.path("2", linkName)); err != nil {
				t.Fatal(err)
			}
		}
		if got := back(t, p); got.Version != to {
			t.Fatalf("it will go back to %+v", got)
		}
		if _, err := p.Settle(9); err != nil { // a newer package
			t.Fatal(err)
		}
		if got, err := p.GoBack(); err == nil || got != nil || runs(t, p) != "v1" {
			t.Errorf("%+v %v, and %s runs", got, err, runs(t, p))
		}
		if got, err := p.GoBack(); err != nil || got != nil {
			t.Errorf("the request is still there: %+v %v", got, err)
		}
	}
}

// TestBackCut: power is lost after each step of a return, which is a prefix of its file operations. The
// board runs v3 or v2, which are whole, and a repeated request goes back.
func TestBackCut(t *testing.T) {
	for name, cut := range map[string]func(p Programs){
		"nothing written":       func(p Programs) { os.Remove(p.path(backName)) },
		"a partial request":     func(p Programs) { os.WriteFile(p.path(backName), []byte(`{"from`), 0o600) },
		"requested":             func(Programs) {},
		"request removed":       func(p Programs) { forgetIn(p.Dir, backName) },
		"proof removed":         func(p Programs) { forgetIn(p.Dir, backName); p.forgetProof() },
		"state saved, old link": func(p Programs) { p.GoBack(); p.link(Program{Sequence: 3}) },
		"complete":              func(p Programs) { p.GoBack() },
	} {
		t.Run(name, func(t *testing.T) {
			p := updated(t)
			back(t, p)
			cut(p)
			settle(t, p) // the power is back
			if _, err := p.GoBack(); err == nil {
				p.Install(rules(1))
			}
			if got := runs(t, p); got != "v3" && got != "v2" {
				t.Fatalf("%s runs", got)
			}
			settle(t, p)
			if s, _ := p.State(); s.Floor != 3 || s.Trial {
				t.Errorf("%+v", s)
			}
			// After a failed trial of v2 only the package's program is before v3.
			if to := back(t, p); to.Version != "v2" && to.Sequence != 0 {
				t.Errorf("it would go back to %+v", to)
			}
			if got := restart(t, p); got == "v3" {
				t.Errorf("%s runs after a repeated request", got)
			}
		})
	}
}
