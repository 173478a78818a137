package webhook

import (
	"errors"
	"log/slog"
	"slices"

	"agentsite/device"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// File is a file with what is sent where. It has secrets: only the site's user can read it. Its methods are called by
// one goroutine at a time.
type File[T any] struct {
	Name string // for errors
	What string // that is in it, for errors
	// Read returns nil if the file does not exist; a nil Read is for no file. Write replaces it durably.
	Read  func() ([]byte, error)
	Write func([]byte) error

	damage  error // of the file, which is then not written
	unsaved bool  // the file differs
}

// content is that of the file.
type content[T any] struct {
	Version int  `json:"version"`
	All     []*T `json:"pushes"`
}

// Load returns the entries. A file that cannot be read stays as it is, and Save fails then.
func (f *File[T]) Load() []*T {
	if f.Read == nil {
		return nil
	}
	var kept content[T]
	text, err := f.Read()
	if err == nil && text != nil {
		err = json.Unmarshal(text, &kept)
	}
	if err == nil && text != nil && kept.Version != 1 {
		err = errors.New("its version is another one")
	}
	if err == nil && slices.Contains(kept.All, nil) {
		err = errors.New("an entry is damaged")
	}
	if err != nil {
		f.damage = device.Faultf(device.Unavailable,
			"the %s of this site cannot be read: its owner removes the file %s, and starts it again", f.What, f.Name)
		slog.Error("a file of webhooks cannot be read; remove it", "file", f.Name, "err", err)
		return nil
	}
	return kept.All
}

// Damage returns why nothing is stored; nil if it is.
func (f *File[T]) Damage() error { return f.damage }

// Unsaved reports whether the last Save failed.
func (f *File[T]) Unsaved() bool { return f.unsaved }

// Save writes the entries.
func (f *File[T]) Save(all []*T) error {
	if f.damage != nil || f.Write == nil {
		return f.damage
	}
	text, err := json.Marshal(content[T]{1, all}, json.Deterministic(true), jsontext.Multiline(false))
	if err == nil {
		err = f.Write(text)
	}
	if f.unsaved = err != nil; f.unsaved {
		slog.Error("a file of webhooks cannot be written", "file", f.Name, "err", err)
		return device.Faultf(device.Unavailable, "the site cannot store this now")
	}
	return nil
}
