package backup

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"agentsite/node/state"
)

// TestRestoreIsExact: nothing that another site left in the folder becomes the restored one's. It is
// moved aside, and erased with the site.
func TestRestoreIsExact(t *testing.T) {
	f, _ := ownedFolder(t)
	b, err := collect(Options{Folder: f, Config: os.DevNull})
	if err != nil {
		t.Fatal(err)
	}
	o := restoring(t, b)
	left := append(siteFiles(), state.ClaimFile)
	for _, name := range left {
		path := o.Folder.Path(name)
		if slices.Contains([]string{state.JournalFolder, state.HistoryFolder, state.TasksFolder}, name) {
			path = filepath.Join(path, "of-before")
		}
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte("of before"), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	about, err := Restore(o)
	if err != nil || len(about.Aside) != 1 {
		t.Fatal(about, err)
	}
	for _, name := range left {
		if text, err := os.ReadFile(o.Folder.Path(name)); err == nil && string(text) == "of before" {
			t.Errorf("%s of another site is the restored one's", name)
		}
		if _, err := os.Stat(o.Folder.Path(name)); err == nil && slices.Contains([]string{state.JournalFolder, state.TasksFolder, state.PushFile, state.HooksFile, state.OutboxFile, state.PhonesFile, state.ExportFile, state.ThingsFile, state.TokenFile, state.SharedFile, state.SpentFile}, name) {
			t.Errorf("%s is there, which no backup has", name)
		}
		if _, err := os.Stat(filepath.Join(about.Aside[0], name)); err != nil {
			t.Errorf("%s is lost: %v", name, err)
		}
	}
	if _, err := Erase(o.Folder, true, sure); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(about.Aside[0]); err == nil {
		t.Error("what was moved aside outlives the site")
	}
}

// TestRestoreInterrupted: a restore after one that was interrupted names what both have moved aside.
func TestRestoreInterrupted(t *testing.T) {
	f, _ := ownedFolder(t)
	b, err := collect(Options{Folder: f, Config: os.DevNull})
	if err != nil {
		t.Fatal(err)
	}
	o := restoring(t, b)
	if err := errors.Join(os.MkdirAll(string(o.Folder), 0o700), os.WriteFile(o.Folder.Path(state.PushFile), []byte("of before"), 0o600)); err != nil {
		t.Fatal(err)
	}
	if _, err := Restore(o); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(o.Folder.Path(state.KeyFile)); err != nil { // it is written last
		t.Fatal(err)
	}
	about, err := Restore(o)
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, folder := range about.Aside {
		for _, name := range []string{state.PushFile, state.AccessFile} {
			if _, err := os.Stat(filepath.Join(folder, name)); err == nil {
				found++
			}
		}
	}
	if len(about.Aside) != 2 || found != 2 {
		t.Errorf("%q", about.Aside)
	}
}

// TestDanglingConfig: a configuration is not reported as restored where a link leads to nothing.
func TestDanglingConfig(t *testing.T) {
	f, _ := ownedFolder(t)
	b, err := collect(Options{Folder: f, Config: os.DevNull})
	if err != nil {
		t.Fatal(err)
	}
	b.Config = "site: { name: again }\n"
	o := restoring(t, b)
	if err := os.Symlink(filepath.Join(t.TempDir(), "away"), o.Config); err != nil {
		t.Skip(err)
	}
	var mistake state.Mistake
	if about, err := Restore(o); !errors.As(err, &mistake) {
		t.Errorf("%+v, %v", about, err)
	}
	if _, err := os.Stat(o.Folder.Path(state.KeyFile)); err == nil {
		t.Error("there is a site without its configuration")
	}
}

// TestNoEffect: a backup has which outputs wait for their owner's reset, a restore adds those to the others, and an
// erase leaves them so.
func TestNoEffect(t *testing.T) {
	f, _ := ownedFolder(t)
	wait := []string{"pump/on"}
	if err := f.Latch().Keep(wait); err != nil {
		t.Fatal(err)
	}
	b, err := collect(Options{Folder: f, Config: os.DevNull})
	if err != nil || !slices.Equal(b.NoEffect, wait) {
		t.Error(b.NoEffect, err)
	}
	o := restoring(t, b)
	if err := os.MkdirAll(string(o.Folder), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := o.Folder.Latch().Keep([]string{"fan/on", "pump/on"}); err != nil {
		t.Fatal(err)
	}
	if _, err := Restore(o); err != nil {
		t.Fatal(err)
	}
	if all, err := o.Folder.Latch().Latched(); err != nil || !slices.Equal(all, []string{"fan/on", "pump/on"}) {
		t.Error(all, err)
	}
	if _, err := Erase(f, true, func() error { return nil }); err != nil {
		t.Fatal(err)
	}
	if all, err := f.Latch().Latched(); err != nil || !slices.Equal(all, wait) {
		t.Error(all, err)
	}
}
