package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
	"time"

	"agentsite/node/identity"
	"agentsite/node/update"
)

// released is a folder of a release with updates, as build makes it.
func released(t *testing.T, key identity.Key, updates ...update.Release) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "updates"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, r := range updates {
		var b bytes.Buffer
		if err := update.Sign(&b, r, []byte(r.Version), key); err != nil {
			t.Fatal(err)
		}
		name := "agentsite_" + r.Version[1:] + "_" + filepath.Base(r.Target) + ".update"
		if err := os.WriteFile(filepath.Join(dir, "updates", name), b.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func readChannel(t *testing.T, dir, name string, key identity.Key) update.Channel {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, "channel", name))
	if err != nil {
		t.Fatal(err)
	}
	c, err := update.ReadChannel(bytes.NewReader(text), []identity.ID{key.ID()}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestChannels: stable has no pre-releases, the newest is first, and each publication has a greater serial.
func TestChannels(t *testing.T) {
	key := identity.New()
	pem := filepath.Join(t.TempDir(), "key.pem")
	if err := os.WriteFile(pem, key.PEM(), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("SOURCE_DATE_EPOCH", "4000000000")
	args := func(dir string, more ...string) []string {
		return append(append([]string{"channels", "-key", pem, "-keys", key.ID().String()}, more...), dir)
	}
	r := func(version string, sequence uint64, target string) update.Release {
		return update.Release{Version: version, Sequence: sequence, Target: target}
	}
	first := released(t, key, r("v1.0.0", 10, "linux/arm64"), r("v1.0.0", 10, "linux/arm/6"),
		r("v1.1.0-beta.1", 11, "linux/arm64"))
	if err := run(args(first)); err != nil {
		t.Fatal(err)
	}
	stable, beta := readChannel(t, first, "stable", key), readChannel(t, first, "beta", key)
	if len(stable.Releases) != 1 || stable.Releases[0].Version != "v1.0.0" || len(stable.Releases[0].Files) != 2 ||
		stable.Serial != 4000000000 {
		t.Errorf("%+v", stable)
	}
	if len(beta.Releases) != 2 || beta.Releases[0].Version != "v1.1.0-beta.1" ||
		beta.Check("beta", beta.Serial) != nil {
		t.Errorf("%+v", beta)
	}
	second := released(t, key, r("v1.0.0", 10, "linux/arm64"), r("v1.1.0", 12, "linux/arm64"))
	t.Setenv("SOURCE_DATE_EPOCH", "3000000000") // of an older branch
	if err := run(args(second, "-earlier", first)); err != nil {
		t.Fatal(err)
	}
	now := readChannel(t, second, "stable", key)
	if now.Serial <= stable.Serial || now.Releases[0].Version != "v1.1.0" || stable.Check("stable", now.Serial) == nil {
		t.Errorf("%+v", now)
	}

	stranger := released(t, identity.New(), r("v2.0.0", 20, "linux/arm64"))
	if err := run(args(stranger)); err == nil {
		t.Error("an update that no board accepts is offered")
	}
	same := released(t, key, r("v1.0.0", 10, "linux/arm64"), r("v1.1.0", 10, "linux/arm/6"))
	if err := run(args(same)); err == nil {
		t.Error("two versions have one sequence")
	}
}
