package acts

import (
	"cmp"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"agentsite/agents"
	"agentsite/agents/principal"
	"agentsite/device"
	"agentsite/node"
	"agentsite/node/config"
	"agentsite/node/state"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// noted is a node.Journal of what owners did.
type noted struct {
	node.Journal
	outcomes []string
}

func (n *noted) Add(_ node.Asked, o node.Outcome) { n.outcomes = append(n.outcomes, o.Fault) }

// TestConfigure: a configuration is replaced as a whole, by an owner who saw the one before, and rolled back
// where the site does not take it.
func TestConfigure(t *testing.T) {
	owner := agents.Principal{Kind: principal.Local, ID: "local", Owner: true}
	mistaken := &config.Error{File: "x", Line: 2, Column: 1, Err: errors.New("wrong")}
	for name, tt := range map[string]struct {
		check, reload error
		unseen        bool
		edited        string // what somebody writes during the reload
		kind          device.FaultKind
		replaced      bool
	}{
		"taken":              {replaced: true},
		"of another text":    {unseen: true, kind: device.Invalid},
		"mistaken":           {check: mistaken, kind: device.Invalid},
		"mistaken at reload": {reload: mistaken, kind: device.Invalid},
		"needs a restart":    {reload: device.Faultf(device.Invalid, "restart"), kind: device.Invalid},
		"refused":            {reload: device.Faultf(device.Unavailable, "the disk"), kind: device.Unavailable},
		"edited meanwhile":   {reload: mistaken, edited: "mine", kind: device.Invalid},
		"the site ends":      {check: device.Faultf(device.Unavailable, "it ends"), kind: device.Unavailable},
		"a part is missing":  {reload: device.Faultf(device.Offline, "it holds, but"), kind: device.Offline, replaced: true},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "site.yaml")
			link := filepath.Join(t.TempDir(), "link.yaml")
			if err := errors.Join(os.WriteFile(file, []byte("old"), 0o640), os.WriteFile(file+".new", []byte("a draft"), 0o600), os.Symlink(file, link)); err != nil {
				t.Fatal(err)
			}
			j := &noted{}
			var read []string
			s := &Site{
				Node: node.New(node.Parts{Hub: node.NewHub(nil, nil, agents.PointURI), Token: "secret", Journal: j}), Configuration: link,
				Check:   func(context.Context, []byte) ([]error, error) { return nil, tt.check },
				Rewrite: state.Rewrite,
				Reload: func(ctx context.Context) error {
					text, err := os.ReadFile(file)
					read = append(read, string(text))
					if tt.edited != "" {
						err = errors.Join(err, os.WriteFile(file, []byte(tt.edited), 0o640))
					}
					return errors.Join(tt.reload, err, ctx.Err())
				},
			}
			was, err := s.configuration()
			if err != nil || was.Text != "old" {
				t.Fatal(was, err)
			}
			if tt.unseen {
				was.Digest = Digest([]byte("older"))
			}
			ctx, leave := context.WithCancel(t.Context())
			leave() // the caller does not wait
			_, err = s.configure(ctx, owner, NewConfiguration{Text: "new", Digest: was.Digest})
			if (err == nil) != (tt.kind == "") || err != nil && device.AsFault(err).Kind != tt.kind {
				t.Errorf("%v, want %q", err, tt.kind)
			}
			want := cmp.Or(tt.edited, "old")
			if tt.replaced {
				want = "new"
			}
			text, err := os.ReadFile(file)
			info, statErr := os.Stat(file)
			if err != nil || statErr != nil || string(text) != want || info.Mode().Perm() != 0o640 {
				t.Errorf("%s %v %v", text, info, err)
			}
			if _, err := os.Lstat(link); err != nil {
				t.Error(err)
			}
			touched := !tt.unseen && tt.check == nil
			if touched != slices.Equal(read, []string{"new"}) || touched != (len(j.outcomes) == 1) {
				t.Errorf("read %q, noted %q", read, j.outcomes)
			}
			if before, err := os.ReadFile(file + ".before"); tt.replaced && (err != nil || string(before) != "old") {
				t.Errorf("%s %v", before, err)
			}
			if draft, err := os.ReadFile(file + ".new"); err != nil || string(draft) != "a draft" {
				t.Errorf("%s %v", draft, err)
			}
		})
	}
}

// TestConfigureWell: a caller who wants the site to be well gets the configuration before back, in the file and in
// use, where a device is missing after the change.
func TestConfigureWell(t *testing.T) {
	missing := device.Faultf(device.Offline, "a device is missing")
	for name, tt := range map[string]struct {
		reloads []error // of the new one and of the one before
		edited  string
		kind    device.FaultKind
		want    string
	}{
		"well":             {[]error{nil}, "", "", "new"},
		"missing":          {[]error{missing, nil}, "", device.Offline, "old"},
		"missing before":   {[]error{missing, missing}, "", device.Offline, "old"},
		"not back":         {[]error{missing, device.Faultf(device.Unavailable, "the disk")}, "", device.Unavailable, "old"},
		"edited meanwhile": {[]error{missing}, "mine", device.Offline, "mine"},
	} {
		file := filepath.Join(t.TempDir(), "site.yaml")
		if err := os.WriteFile(file, []byte("old"), 0o640); err != nil {
			t.Fatal(err)
		}
		var read []string
		s := &Site{
			Node: node.New(node.Parts{Hub: node.NewHub(nil, nil, agents.PointURI), Journal: &noted{}}), Configuration: file,
			Check:   func(context.Context, []byte) ([]error, error) { return nil, nil },
			Rewrite: state.Rewrite,
			Reload: func(context.Context) error {
				text, err := os.ReadFile(file)
				if read = append(read, string(text)); tt.edited != "" {
					err = errors.Join(err, os.WriteFile(file, []byte(tt.edited), 0o640))
				}
				return cmp.Or(err, tt.reloads[len(read)-1])
			},
		}
		_, err := s.configure(t.Context(), agents.Principal{ID: "local", Owner: true}, NewConfiguration{Text: "new", Digest: Digest([]byte("old")), Well: true})
		if (err == nil) != (tt.kind == "") || err != nil && device.AsFault(err).Kind != tt.kind {
			t.Errorf("%s: %v", name, err)
		}
		text, err := os.ReadFile(file)
		if want := []string{"new", "old"}[:len(tt.reloads)]; err != nil || string(text) != tt.want || !slices.Equal(read, want) {
			t.Errorf("%s: %s, read %q, %v", name, text, read, err)
		}
	}
}

// TestDraft: a draft is checked, changes nothing, and has the digest of the configuration.
func TestDraft(t *testing.T) {
	const text = "site: { name: x } # mine\n"
	file := filepath.Join(t.TempDir(), "site.yaml")
	if err := os.WriteFile(file, []byte(text), 0o640); err != nil {
		t.Fatal(err)
	}
	var checked string
	s := &Site{Configuration: file, Check: func(_ context.Context, text []byte) ([]error, error) {
		checked = string(text)
		return []error{errors.New("doubt")}, &config.Error{Line: 2, Err: errors.New("wrong")}
	}}
	set := []config.Setting{{Key: "driver", Value: "relay"}}
	got, err := s.draft(t.Context(), agents.Principal{}, Draft{Device: "pump", Set: set})
	want := text + "devices:\n  pump: { driver: relay }\n"
	if err != nil || got.Text != want || checked != want || got.Digest != Digest([]byte(text)) || len(got.Mistakes) != 1 || len(got.Warnings) != 1 {
		t.Errorf("%+v %v", got, err)
	}
	got, err = s.draft(t.Context(), agents.Principal{}, Draft{Device: "lamp", Set: set, Text: got.Text})
	if want += "  lamp: { driver: relay }\n"; err != nil || got.Text != want {
		t.Errorf("%+v %v", got, err)
	}
	if _, err = s.draft(t.Context(), agents.Principal{}, Draft{Device: "lamp", Set: set, Text: got.Text, New: true}); device.AsFault(err).Kind != device.Invalid {
		t.Error(err)
	}
	if got, err = s.draft(t.Context(), agents.Principal{}, Draft{Device: "fan", Set: set, New: true}); err != nil || got.Text == text {
		t.Errorf("%+v %v", got, err)
	}
	if _, err = s.draft(t.Context(), agents.Principal{}, Draft{Device: "My Pump", Set: set}); device.AsFault(err).Kind != device.Invalid {
		t.Error(err)
	}
	if now, err := os.ReadFile(file); err != nil || string(now) != text {
		t.Errorf("%s %v", now, err)
	}
}

// TestConfigureUnwritable: a file that the site's user may not write stays, in a folder where it may, and so
// does what is no file.
func TestConfigureUnwritable(t *testing.T) {
	s := &Site{
		Node:  node.New(node.Parts{Hub: node.NewHub(nil, nil, agents.PointURI), Token: "secret", Journal: &noted{}}),
		Check: func(context.Context, []byte) ([]error, error) { return nil, nil }, Rewrite: state.Rewrite,
		Reload: func(context.Context) error { t.Error("reloaded"); return nil },
	}
	configure := func() error {
		_, err := s.configure(t.Context(), agents.Principal{ID: "local", Owner: true}, NewConfiguration{Text: "new", Digest: Digest([]byte("old"))})
		return err
	}
	s.Configuration = filepath.Join(t.TempDir(), "site.yaml")
	if err := os.WriteFile(s.Configuration, []byte("old"), 0o444); err != nil {
		t.Fatal(err)
	}
	if f, err := os.OpenFile(s.Configuration, os.O_WRONLY, 0); err == nil { // the superuser's
		f.Close()
	} else if err := configure(); device.AsFault(err).Kind != device.Unavailable {
		t.Error(err)
	}
	s.Configuration = t.TempDir()
	if err := configure(); device.AsFault(err).Kind != device.Unavailable {
		t.Error(err)
	}
}

// TestMistakes: each mistake that an error joins comes with its place.
func TestMistakes(t *testing.T) {
	all := MistakesOf(errors.Join(
		errors.Join(&config.Error{Line: 2, Column: 3, Err: errors.New("a")}, errors.New("b")), &config.Error{Line: 4, Column: 1, Err: errors.New("c")}))
	if want := []Mistake{{2, 3, "a"}, {0, 0, "b"}, {4, 1, "c"}}; !slices.Equal(all, want) {
		t.Errorf("%+v", all)
	}
	if none := MistakesOf(nil); none == nil || len(none) > 0 {
		t.Errorf("%+v", none)
	}
}

// TestConfigureEdited: what an editor wrote after the digest was compared stays, and is not read again.
func TestConfigureEdited(t *testing.T) {
	file := filepath.Join(t.TempDir(), "site.yaml")
	if err := os.WriteFile(file, []byte("mine"), 0o640); err != nil {
		t.Fatal(err)
	}
	s := &Site{Rewrite: state.Rewrite, Reload: func(context.Context) error { t.Error("reloaded"); return nil }}
	err := s.replace(
		t.Context(), agents.Principal{}, Configuration{File: file, Text: "old"}, NewConfiguration{Text: "new"},
	)
	if device.AsFault(err).Kind != device.Invalid {
		t.Error(err)
	}
	if text, err := os.ReadFile(file); err != nil || string(text) != "mine" {
		t.Errorf("%s %v", text, err)
	}
}

// TestConfigureByAnother: where another process writes the file, it also puts the text before back, and its refusal is
// the caller's.
func TestConfigureByAnother(t *testing.T) {
	file := filepath.Join(t.TempDir(), "site.yaml")
	refused := device.Faultf(device.Denied, "only its owner")
	s := &Site{
		Reload: func(context.Context) error { return device.Faultf(device.Offline, "a device is missing") },
		Rewrite: func(path string, before, text []byte) error { // leaves nothing beside the file
			if now, err := os.ReadFile(path); err != nil || string(now) != string(before) {
				return errors.Join(err, state.ErrChanged)
			}
			if string(text) == "power" {
				return refused
			}
			return os.WriteFile(path, text, 0o600)
		},
	}
	for text, kind := range map[string]device.FaultKind{"new": device.Offline, "power": device.Denied} {
		if err := os.WriteFile(file, []byte("old"), 0o600); err != nil {
			t.Fatal(err)
		}
		err := s.replace(
			t.Context(), agents.Principal{}, Configuration{File: file, Text: "old"}, NewConfiguration{Text: text, Well: true},
		)
		if device.AsFault(err).Kind != kind {
			t.Errorf("%s: %v", text, err)
		}
		if now, _ := os.ReadFile(file); string(now) != "old" {
			t.Errorf("%s: %s", text, now)
		}
	}
}
