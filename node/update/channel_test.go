package update

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"
	"testing"
	"time"

	"agentsite/node/identity"
)

var published = time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)

// stable is a channel of two releases.
func stable() Channel {
	file := func(path, target string) ChannelFile {
		return ChannelFile{target, path, 100, strings.Repeat("0a", 32)}
	}
	return Channel{"stable", 7, published, published.AddDate(0, 0, 90), []ChannelRelease{
		{"v1.1.0", 20, []ChannelFile{file("updates/agentsite_1.1.0_arm64.update", "linux/arm64"),
			file("updates/agentsite_1.1.0_armhf.update", "linux/arm/6")}},
		{"v1.0.0", 10, []ChannelFile{file("updates/agentsite_1.0.0_arm64.update", "linux/arm64")}},
	}}
}

func signedChannel(t testing.TB, c Channel, by ...identity.Key) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := SignChannel(&b, c, by...); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// TestChannel: it is read as it was written, if one of the keys signed it, until it expires.
func TestChannel(t *testing.T) {
	stranger := identity.New()
	text := signedChannel(t, stable(), stranger, offline)
	t.Logf("%s", text)
	got, err := ReadChannel(bytes.NewReader(text), keys(), published)
	if err != nil || !reflect.DeepEqual(got, stable()) {
		t.Errorf("%v\n%+v", err, got)
	}
	if f, ok := got.Releases[0].File("linux/arm/6"); !ok || !strings.Contains(f.Path, "armhf") {
		t.Error(f, ok)
	}
	if _, ok := got.Releases[1].File("linux/arm/6"); ok {
		t.Error("a target without a file has one")
	}
	for _, tt := range []struct {
		keys []identity.ID
		now  time.Time
		well bool
	}{
		{keys(), published.AddDate(0, 0, 90).Add(-time.Second), true}, {keys(), published.AddDate(0, 0, 90), false},
		{keys(), time.Unix(0, 0), true}, {[]identity.ID{online.ID()}, published, false}, {nil, published, false},
	} {
		if _, err := ReadChannel(bytes.NewReader(text), tt.keys, tt.now); (err == nil) != tt.well ||
			err != nil && !errors.As(err, new(Refused)) {
			t.Errorf("%v at %v: %v", tt.keys, tt.now, err)
		}
	}
}

// TestChannelReplayed: neither an older list nor that of another series is accepted.
func TestChannelReplayed(t *testing.T) {
	for _, tt := range []struct {
		name   string
		serial uint64
		well   bool
	}{{"stable", 0, true}, {"stable", 7, true}, {"stable", 8, false}, {"beta", 0, false}} {
		if err := stable().Check(tt.name, tt.serial); (err == nil) != tt.well {
			t.Errorf("%+v: %v", tt, err)
		}
	}
}

// TestChannelDamaged: cut off or altered anywhere, and with anything behind it, it is refused.
func TestChannelDamaged(t *testing.T) {
	whole := signedChannel(t, stable(), online)
	refused := func(what string, text []byte) {
		t.Helper()
		if _, err := ReadChannel(bytes.NewReader(text), keys(), published); !errors.As(err, new(Refused)) {
			t.Errorf("%s: %v", what, err)
		}
	}
	for n := range whole {
		refused(fmt.Sprintf("%d bytes", n), whole[:n])
		altered := bytes.Clone(whole)
		altered[n] ^= 1 << (n % 8)
		refused(fmt.Sprintf("byte %d altered", n), altered)
	}
	refused("a line behind it", append(bytes.Clone(whole), "more\n"...))
	refused("too many signatures", signedTwice(whole, maxSignatures+1))
	refused("too long", append(bytes.Clone(whole), bytes.Repeat([]byte("x"), maxChannel)...))
	refused("another format", bytes.Replace(whole, []byte("channel 1"), []byte("channel 2"), 1))
	// A signature for another purpose does not count.
	body := whole[:bytes.Index(whole, []byte(signatureLine))]
	other := base64.StdEncoding.EncodeToString(online.Sign(purpose, body))
	refused("another purpose", fmt.Appendf(bytes.Clone(body), "signature %s %s\n", online.ID(), other))
	if _, err := ReadChannel(bytes.NewReader(signedTwice(whole, 2)), keys(), published); err != nil {
		t.Error(err)
	}
}

// signedTwice repeats the signature n times in all.
func signedTwice(whole []byte, n int) []byte {
	at := bytes.Index(whole, []byte(signatureLine))
	return append(bytes.Clone(whole[:at]), bytes.Repeat(whole[at:], n)...)
}

// TestSignChannelRefuses what ReadChannel would.
func TestSignChannelRefuses(t *testing.T) {
	for what, spoil := range map[string]func(*Channel){
		"name":       func(c *Channel) { c.Name = "Stable" },
		"serial":     func(c *Channel) { c.Serial = 0 },
		"for ever":   func(c *Channel) { c.Expires = c.Date.AddDate(9, 0, 0) },
		"expired":    func(c *Channel) { c.Expires = c.Date },
		"no date":    func(c *Channel) { c.Date, c.Expires = time.Time{}, time.Time{}.Add(time.Hour) },
		"empty":      func(c *Channel) { c.Releases = nil },
		"order":      func(c *Channel) { c.Releases[0], c.Releases[1] = c.Releases[1], c.Releases[0] },
		"version":    func(c *Channel) { c.Releases[0].Version = "1 2" },
		"no files":   func(c *Channel) { c.Releases[0].Files = nil },
		"target":     func(c *Channel) { c.Releases[0].Files[0].Target = "linux" },
		"two":        func(c *Channel) { c.Releases[0].Files[1].Target = "linux/arm64" },
		"size":       func(c *Channel) { c.Releases[0].Files[0].Size = MaxProgram * 2 },
		"no size":    func(c *Channel) { c.Releases[0].Files[0].Size = 0 },
		"hash":       func(c *Channel) { c.Releases[0].Files[0].SHA256 = "00" },
		"up":         func(c *Channel) { c.Releases[0].Files[0].Path = "../x" },
		"host":       func(c *Channel) { c.Releases[0].Files[0].Path = "//example.org/x" },
		"scheme":     func(c *Channel) { c.Releases[0].Files[0].Path = "https://example.org/x" },
		"long":       func(c *Channel) { c.Releases[0].Files[0].Path = strings.Repeat("x", 201) },
		"many bytes": func(c *Channel) { c.Releases = many() },
	} {
		c := stable()
		spoil(&c)
		if err := SignChannel(io.Discard, c, online); err == nil {
			t.Errorf("%s: it is signed", what)
		}
	}
	if SignChannel(io.Discard, stable()) == nil {
		t.Error("nobody signs it")
	}
}

// many returns releases whose text is longer than a channel may be.
func many() (all []ChannelRelease) {
	for n := range maxReleases {
		r := ChannelRelease{Version: "v1", Sequence: uint64(maxReleases - n)}
		for t := range maxFiles {
			r.Files = append(r.Files, ChannelFile{fmt.Sprintf("linux/a%d", t), strings.Repeat("x", 200), 1,
				strings.Repeat("00", 32)})
		}
		all = append(all, r)
	}
	return all
}

// FuzzChannel: nothing is accepted that was not signed.
func FuzzChannel(f *testing.F) {
	whole := signedChannel(f, stable(), online)
	f.Add(whole)
	f.Add(signedTwice(whole, 2))
	f.Fuzz(func(t *testing.T, text []byte) {
		if c, err := ReadChannel(bytes.NewReader(text), keys(), published); err == nil &&
			!reflect.DeepEqual(c, stable()) {
			t.Errorf("%q is accepted", text)
		}
	})
}

// FuzzSignedChannel reads any object as if it were signed.
func FuzzSignedChannel(f *testing.F) {
	whole := signedChannel(f, stable(), online)
	f.Add(whole[len(channelMagic):bytes.Index(whole, []byte(signatureLine))])
	f.Fuzz(func(t *testing.T, object []byte) {
		body := append(append([]byte(channelMagic), object...), '\n')
		file := bytes.NewBuffer(bytes.Clone(body))
		fmt.Fprintf(file, "signature %s %s\n", online.ID(),
			base64.StdEncoding.EncodeToString(online.Sign(channelPurpose, body)))
		c, err := ReadChannel(file, keys(), published)
		if err != nil {
			return
		}
		if err := SignChannel(io.Discard, c, online); err != nil {
			t.Errorf("%+v: %v", c, err)
		}
	})
}
