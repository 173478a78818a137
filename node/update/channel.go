package update

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"agentsite/node/identity"
)

const (
	// A channel is a text: a line with the version of the format, a JSON object, and a line for each
	// signature. What is signed is everything before the first of these.
	channelMark   = "agentsite channel "
	channelMagic  = channelMark + "1\n"
	signatureLine = "signature "

	maxChannel  = 64 << 10
	maxReleases = 32
	maxFiles    = 16
	maxLifetime = 400 * 24 * time.Hour

	channelPurpose identity.Purpose = "update channel"
)

// Channel is the signed list of the releases that a series, such as stable, offers. A client keeps
// the greatest serial that it has read of each series, and calls Check with it.
type Channel struct {
	Name     string           `json:"channel"` // as of the file: stable or beta
	Serial   uint64           `json:"serial"`  // greater in each later list of the series; at least 1
	Date     time.Time        `json:"date"`
	Expires  time.Time        `json:"expires"`  // after Date, at most 400 days
	Releases []ChannelRelease `json:"releases"` // the newest first; an owner may go back to the others
}

// ChannelRelease is a release in a channel.
type ChannelRelease struct {
	Version  string        `json:"version"`
	Sequence uint64        `json:"sequence"`
	Files    []ChannelFile `json:"files"` // at most one for each target
}

// ChannelFile locates the update of one target.
type ChannelFile struct {
	Target string `json:"target"` // as of Target
	Path   string `json:"path"`   // below the base URL, which is the one above the channel's folder
	Size   int64  `json:"size"`   // of the whole update, in bytes
	SHA256 string `json:"sha256"` // of the whole update, in hexadecimal
}

var (
	channelNames = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[a-z]{1,16}$`) })
	channelPaths = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^[A-Za-z0-9_+~-][A-Za-z0-9._+~-]*(/[A-Za-z0-9_+~-][A-Za-z0-9._+~-]*)*$`)
	})
)

// IsChannelName reports whether a text can be the name of a channel.
func IsChannelName(name string) bool { return channelNames().MatchString(name) }

func (c Channel) check() error {
	switch life := c.Expires.Sub(c.Date); {
	case !channelNames().MatchString(c.Name):
		return fmt.Errorf("a channel's name is 1 to 16 small letters, such as stable, not %.80q", c.Name)
	case c.Serial == 0:
		return errors.New("its serial is 0; the first is 1")
	case c.Date.Unix() <= 0 || life <= 0 || life > maxLifetime:
		return fmt.Errorf("it expires at most %d days after its date, not from %v to %v", int(maxLifetime.Hours()/24),
			c.Date.Format(time.RFC3339), c.Expires.Format(time.RFC3339))
	case len(c.Releases) < 1 || len(c.Releases) > maxReleases:
		return fmt.Errorf("a channel has 1 to %d releases, not %d", maxReleases, len(c.Releases))
	}
	for n, r := range c.Releases {
		if n > 0 && r.Sequence >= c.Releases[n-1].Sequence {
			return fmt.Errorf("%.80q is not older than the release before it", r.Version)
		}
		if err := r.check(); err != nil {
			return err
		}
	}
	return nil
}

func (r ChannelRelease) check() error {
	if len(r.Files) < 1 || len(r.Files) > maxFiles {
		return fmt.Errorf("a release has 1 to %d files, not %d", maxFiles, len(r.Files))
	}
	seen := make(map[string]bool)
	for _, f := range r.Files {
		// The release in the update has the same limits, but for what surrounds the program.
		err := Release{Version: r.Version, Sequence: r.Sequence, Target: f.Target, Size: max(1, f.Size-maxSeal)}.check()
		sum, wrong := hex.DecodeString(f.SHA256)
		switch {
		case err != nil:
			return err
		case f.Size < 1:
			return fmt.Errorf("an update of %d bytes", f.Size)
		case len(f.Path) > 200 || !channelPaths().MatchString(f.Path):
			return fmt.Errorf("a path has no scheme, no .. and at most 200 letters, digits and . _ + ~ - /, not %.80q",
				f.Path)
		case wrong != nil || len(sum) != sha256.Size:
			return fmt.Errorf("a SHA-256 has %d hexadecimal digits, not %.80q", 2*sha256.Size, f.SHA256)
		case seen[f.Target]:
			return fmt.Errorf("two files for %s", f.Target)
		}
		seen[f.Target] = true
	}
	return nil
}

// File returns the update for a target.
func (r ChannelRelease) File(target string) (ChannelFile, bool) {
	for _, f := range r.Files {
		if f.Target == target {
			return f, true
		}
	}
	return ChannelFile{}, false
}

// Check refuses a channel of another name, and one that is older than a serial that was read before:
// a server that replays it would hold back later releases.
func (c Channel) Check(name string, serial uint64) error {
	switch {
	case c.Name != name:
		return Refused{fmt.Errorf("the server sends the channel %s for %s: report this to its operator", c.Name, name)}
	case c.Serial < serial:
		return Refused{fmt.Errorf("the channel %s is an old one (serial %d, after %d): try again later, report this to "+
			"the operator of the server, or install the package of a newer version",
			c.Name, c.Serial, serial)}
	}
	return nil
}

// SignChannel writes a channel, signed by keys.
func SignChannel(w io.Writer, c Channel, keys ...identity.Key) error {
	c.Date, c.Expires = c.Date.UTC(), c.Expires.UTC()
	if err := c.check(); err != nil {
		return err
	}
	if len(keys) < 1 || len(keys) > maxSignatures {
		return fmt.Errorf("a channel is signed by 1 to %d keys, not %d", maxSignatures, len(keys))
	}
	text, err := json.Marshal(c, jsontext.WithIndent("  "))
	if err != nil {
		return err
	}
	body := append([]byte(channelMagic), append(text, '\n')...)
	file := bytes.NewBuffer(bytes.Clone(body))
	for _, k := range keys {
		signature := base64.StdEncoding.EncodeToString(k.Sign(channelPurpose, body))
		fmt.Fprintf(file, signatureLine+"%s %s\n", k.ID(), signature)
	}
	if file.Len() > maxChannel {
		return fmt.Errorf("it has %d bytes, and at most %d: leave out old releases", file.Len(), maxChannel)
	}
	_, err = w.Write(file.Bytes())
	return err
}

func damagedChannel(why string) error {
	return Refused{fmt.Errorf("not a channel of agentsite, or damaged (%s): try again, or look at its address", why)}
}

// ReadChannel reads a channel of at most 64 KiB, and refuses it unless one of the keys has signed it and it has
// not expired at now. A clock that is late accepts it for longer. The caller calls Check.
func ReadChannel(r io.Reader, keys []identity.ID, now time.Time) (Channel, error) {
	if len(keys) == 0 {
		return Channel{}, Refused{errors.New("this build of agentsite has no release keys and reads no channel: " +
			"install a package")}
	}
	text, err := io.ReadAll(io.LimitReader(r, maxChannel+1))
	if err != nil {
		return Channel{}, err
	}
	c, err := openChannel(text, keys)
	if err == nil && !now.Before(c.Expires) {
		err = Refused{fmt.Errorf("the channel %s expired at %s: the server may hold back newer releases, or this "+
			"clock is wrong (%s)",
			c.Name, c.Expires.UTC().Format(time.RFC3339), now.UTC().Format(time.RFC3339))}
	}
	if err != nil {
		return Channel{}, err
	}
	return c, nil
}

// openChannel verifies the signatures before it decodes anything else.
func openChannel(text []byte, keys []identity.ID) (c Channel, err error) {
	switch {
	case len(text) > maxChannel:
		return c, damagedChannel("it is too long")
	case !bytes.HasPrefix(text, []byte(channelMark)):
		return c, damagedChannel("it begins differently")
	case !bytes.HasPrefix(text, []byte(channelMagic)):
		return c, Refused{errors.New("unknown format of the channel: install the newer package")}
	}
	at := bytes.Index(text, []byte("\n"+signatureLine))
	if at < 0 {
		return c, damagedChannel("it ends too early")
	}
	body, lines := text[:at+1], string(text[at+1:])
	signed, count := false, 0
	for line := range strings.Lines(lines) {
		key, signature, ok := strings.Cut(strings.TrimPrefix(line, signatureLine), " ")
		if count++; count > maxSignatures || !ok ||
			!strings.HasPrefix(line, signatureLine) || !strings.HasSuffix(line, "\n") {
			return c, damagedChannel("its signatures cannot be read")
		}
		b, err := base64.StdEncoding.Strict().DecodeString(strings.TrimSuffix(signature, "\n"))
		if err != nil {
			return c, damagedChannel("its signatures cannot be read")
		}
		for _, id := range keys {
			signed = signed || key == id.String() && id.Verify(channelPurpose, body, b)
		}
	}
	if !signed {
		return c, Refused{errors.New("not signed by a release key of this program: it is damaged, from another " +
			"source, or so new that its package has to be installed")}
	}
	if err := json.Unmarshal(body[len(channelMagic):], &c, json.RejectUnknownMembers(true)); err != nil {
		return Channel{}, damagedChannel("it cannot be read")
	}
	if err := c.check(); err != nil {
		return Channel{}, damagedChannel(err.Error())
	}
	return c, nil
}
