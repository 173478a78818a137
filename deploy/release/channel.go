package main

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"agentsite/node/identity"
	"agentsite/node/update"
)

// maxOffered limits how many releases a channel offers.
const maxOffered = 10

// channels writes the channels stable and beta of all updates in the folder of a release. Stable has no
// pre-releases; without any other release there is none.
func channels(args []string) error {
	var keys []identity.Key
	flags := flag.NewFlagSet("release channels", flag.ExitOnError)
	keyFlag(flags, &keys)
	trusted := flags.String("keys", "", "the keys of all these releases, did:key:…,did:key:…")
	earlier := flags.String("earlier", "", "the `folder` with the channels so far, whose serial is exceeded")
	days := flags.Int("days", 90, "the channels expire after so many days")
	flags.Parse(args)
	rules, err := update.NewRules("", "", *trusted)
	if err != nil {
		return err
	}
	date, err := epoch()
	if err != nil {
		return err
	}
	folder := flags.Arg(0)
	releases, err := offered(filepath.Join(folder, "updates"), rules.Keys)
	if err != nil {
		return err
	}
	for _, name := range []string{"stable", "beta"} {
		c := update.Channel{Name: name, Serial: uint64(date.Unix()), Date: date, Expires: date.AddDate(0, 0, *days)}
		for _, r := range releases {
			if len(c.Releases) < maxOffered && (name == "beta" || !strings.Contains(r.Version, "-")) {
				c.Releases = append(c.Releases, r)
			}
		}
		if len(c.Releases) == 0 {
			continue
		}
		if c.Serial, err = nextSerial(*earlier, c, rules.Keys); err != nil {
			return err
		}
		var text bytes.Buffer
		if err := update.SignChannel(&text, c, keys...); err != nil {
			return err
		}
		if _, err := update.ReadChannel(bytes.NewReader(text.Bytes()), rules.Keys, date); err != nil {
			return fmt.Errorf("-key is not among -keys, so no board would accept the channel: %w", err)
		}
		if err := errors.Join(os.MkdirAll(filepath.Join(folder, "channel"), 0o755),
			os.WriteFile(filepath.Join(folder, "channel", name), text.Bytes(), 0o644)); err != nil {
			return err
		}
	}
	return nil
}

// nextSerial returns c's serial, or one above that of the channel in the folder of an earlier release.
func nextSerial(earlier string, c update.Channel, keys []identity.ID) (uint64, error) {
	if earlier == "" {
		return c.Serial, nil
	}
	f, err := os.Open(filepath.Join(earlier, "channel", c.Name))
	if errors.Is(err, fs.ErrNotExist) {
		return c.Serial, nil
	}
	if err != nil {
		return 0, err
	}
	defer f.Close()
	was, err := update.ReadChannel(f, keys, time.Unix(0, 0)) // it may have expired
	if errors.As(err, new(update.Refused)) {
		fmt.Fprintf(os.Stderr, "%s does not count: %v\n", f.Name(), err) // as after the loss of a key
		return c.Serial, nil
	}
	return max(c.Serial, was.Serial+1), err
}

// offered returns the releases whose updates are in a folder, the newest first.
func offered(folder string, keys []identity.ID) ([]update.ChannelRelease, error) {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil, err
	}
	var all []update.ChannelRelease
	for _, e := range entries {
		text, err := os.ReadFile(filepath.Join(folder, e.Name()))
		if err != nil {
			return nil, err
		}
		u, err := update.Read(bytes.NewReader(text), keys)
		if err == nil {
			err = u.CopyTo(io.Discard)
		}
		if err != nil {
			return nil, fmt.Errorf("%s cannot be offered, remove it or add its key to -keys: %w", e.Name(), err)
		}
		sum := sha256.Sum256(text)
		file := update.ChannelFile{Target: u.Target, Path: "updates/" + e.Name(), Size: int64(len(text)),
			SHA256: hex.EncodeToString(sum[:])}
		n := slices.IndexFunc(all, func(r update.ChannelRelease) bool { return r.Sequence == u.Sequence })
		if n < 0 {
			n = len(all)
			all = append(all, update.ChannelRelease{Version: u.Version, Sequence: u.Sequence})
		}
		if all[n].Version != u.Version {
			return nil, fmt.Errorf("%s and %s have the sequence %d: releases are made of different commits",
				all[n].Version, u.Version, u.Sequence)
		}
		all[n].Files = append(all[n].Files, file)
	}
	slices.SortFunc(all, func(a, b update.ChannelRelease) int { return cmp.Compare(b.Sequence, a.Sequence) })
	return all, nil
}
