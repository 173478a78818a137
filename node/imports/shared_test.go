package imports

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"testing"

	"agentsite/agents"
	"agentsite/device"
	"agentsite/node/bundle"
	"agentsite/node/hosted"
	"agentsite/node/identity"
)

// sharing is a store that shares, with its file.
type sharing struct {
	*Store
	file  []byte
	told  int
	disk  error
	realm error

	nowhere error // of MayPublish
}

func newSharing(t *testing.T, file []byte) *sharing {
	t.Helper()
	s := &sharing{file: file}
	var err error
	s.Store, err = New(Options{
		Hosted: noAgents{}, Shared: file, MayShare: func() error { return s.realm }, MayPublish: func() error { return s.nowhere }, OnShare: func() { s.told++ },
		Points: func(context.Context, agents.Principal) ([]agents.Point, error) { return points, nil },
		WriteShared: func(b []byte) error {
			if s.disk == nil {
				s.file = b
			}
			return s.disk
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// noAgents is a manager without agents.
type noAgents struct{ manager }

func (noAgents) SetImports([]hosted.Imported) error { return nil }

func ruleFile(t *testing.T, name string) []byte {
	t.Helper()
	b, err := bundle.Seal(identity.New(), bundle.Content{Name: name, Kind: "rule", Definition: "when: need/t < 5 Cel\n", Needs: []bundle.Need{{Name: "t", Kind: device.KindMeasurement, Unit: "Cel"}}, Created: 1_700_000_000})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestShare: a shared bundle is found by its whole hash alone, over restarts, until sharing ends.
func TestShare(t *testing.T) {
	s, frost := newSharing(t, nil), ruleFile(t, "frost")
	id := bundle.IDOf(frost)
	got, err := s.Share(t.Context(), agents.Principal{}, Sharing{Bundle: frost})
	if err != nil || got.ID != id.String() || got.Name != "frost" || s.told != 1 {
		t.Fatalf("%+v, %v, %d", got, err, s.told)
	}
	// again
	if _, err := s.Share(t.Context(), agents.Principal{}, Sharing{Bundle: frost}); err != nil || len(s.Shared()) != 1 {
		t.Errorf("%+v, %v", s.Shared(), err)
	}
	s = newSharing(t, s.file)
	if !bytes.Equal(s.SharedFile(id), frost) || !slices.Equal(s.SharedWords(), []string{id.Word()}) {
		t.Errorf("%x, %v", s.SharedFile(id), s.SharedWords())
	}
	near := id
	near[31] ^= 1
	if s.SharedFile(near) != nil || near.Word() != id.Word() {
		t.Error("a part of the hash is enough")
	}
	s.realm = device.Faultf(device.Invalid, "no realm")
	if words := s.SharedWords(); words != nil {
		t.Errorf("without a realm %v", words)
	}
	for _, bad := range []string{"", "frost", "sha256:", near.String(), "sha256:" + string(bytes.Repeat([]byte("A"), 64))} {
		if err := s.Unshare(bad); device.AsFault(err).Kind != device.Invalid {
			t.Errorf("%q: %v", bad, err)
		}
	}
	if err := s.Unshare(id.String()); err != nil || s.SharedFile(id) != nil || len(newSharing(t, s.file).Shared()) != 0 {
		t.Errorf("%v, %+v", err, s.Shared())
	}
}

// TestShareRefused: nothing but a bundle is shared, no more than a site keeps, and nothing without a realm
// with a secret or against the disk.
func TestShareRefused(t *testing.T) {
	s, frost := newSharing(t, nil), ruleFile(t, "frost")
	for _, bad := range [][]byte{nil, []byte("#!/bin/sh"), frost[:len(frost)-1], append(slices.Clone(frost), 0), make([]byte, bundle.MaxBytes+1)} {
		if _, err := s.Share(
			t.Context(), agents.Principal{}, Sharing{Bundle: bad},
		); device.AsFault(err).Kind != device.Invalid || s.told != 0 {
			t.Errorf("%d bytes: %v", len(bad), err)
		}
	}
	s.realm = device.Faultf(device.Invalid, "no realm")
	if _, err := s.Share(t.Context(), agents.Principal{}, Sharing{Bundle: frost}); !errors.Is(err, s.realm) {
		t.Error(err)
	}
	s.realm, s.disk = nil, errors.New("full")
	if _, err := s.Share(
		t.Context(), agents.Principal{}, Sharing{Bundle: frost},
	); device.AsFault(err).Kind != device.Unavailable || s.SharedFile(bundle.IDOf(frost)) != nil {
		t.Error(err)
	}
	s.disk = nil
	for range 16 {
		if _, err := s.Share(t.Context(), agents.Principal{}, Sharing{Bundle: ruleFile(t, "other")}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.Share(
		t.Context(), agents.Principal{}, Sharing{Bundle: frost},
	); device.AsFault(err).Kind != device.Invalid {
		t.Error(err)
	}
	damaged := newSharing(t, append(s.file, 0))
	if _, err := damaged.Share(
		t.Context(), agents.Principal{}, Sharing{Bundle: frost},
	); damaged.SharedDamage() == nil || device.AsFault(err).Kind != device.Unavailable || damaged.SharedWords() != nil {
		t.Error(err)
	}
}
