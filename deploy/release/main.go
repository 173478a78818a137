// Command release makes release keys, signed updates and channels, software bills of materials, lists of
// hashes and their signatures. The scripts deploy/packages and deploy/publish/build call it.
//
//	release key FILE                          creates a key and prints its public half
//	release id FILE                           prints the public half of a key
//	release sign -key FILE [-key FILE] ...    writes an update, see release sign -help
//	release channels -key FILE ... FOLDER     writes the channels of a release, see release channels -help
//	release signature FILE OF                 signs a file with a key, for ssh-keygen -Y verify
//	release signers DID:KEY...                prints the keys for ssh-keygen -Y verify
//	release changes VERSION CHANGELOG         prints what a version changes
//	release sbom PROGRAM                      prints the modules of a program, as CycloneDX
//	release notices PROGRAM...                prints the licences of what programs link
//	release sums FILE...                      prints SHA-256 hashes, as sha256sum does
//	release zip FILE FOLDER                   writes a ZIP file
package main

import (
	"crypto/sha256"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"agentsite/node/identity"
	"agentsite/node/update"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

// commands are the commands by name, with the number of arguments that they need at least.
var commands = map[string]struct {
	least int
	run   func(args []string) error
}{
	"key":       {1, func(args []string) error { return makeKey(args[0]) }},
	"id":        {1, func(args []string) error { return printID(args[0]) }},
	"sign":      {1, sign},
	"channels":  {1, channels},
	"signature": {2, signWith},
	"signers":   {1, printSigners},
	"changes":   {2, func(args []string) error { return changes(args[0], args[1]) }},
	"sbom":      {1, func(args []string) error { return sbom(os.Stdout, args[0]) }},
	"notices":   {1, func(args []string) error { return notices(os.Stdout, args) }},
	"sums":      {1, sums},
	"zip":       {2, func(args []string) error { return archive(args[0], args[1]) }},
}

func run(args []string) error {
	if len(args) > 0 {
		if c, ok := commands[args[0]]; ok && len(args) > c.least {
			return c.run(args[1:])
		}
	}
	return fmt.Errorf("name a command and its files: %s", strings.Join(slices.Sorted(maps.Keys(commands)), ", "))
}

// makeKey creates a private key in a file that does not exist yet.
func makeKey(file string) error {
	key := identity.New()
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%s exists already and is not replaced, because updates could not be signed without it: "+
			"name another file", file)
	}
	if err != nil {
		return err
	}
	_, err = f.Write(key.PEM())
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	fmt.Println(key.ID())
	return nil
}

// keyFlag defines the flag -key, for one key or more.
func keyFlag(flags *flag.FlagSet, keys *[]identity.Key) {
	flags.Func("key", "a `file` with a key that signs; again for a second", func(file string) error {
		key, err := readKey(file)
		*keys = append(*keys, key)
		return err
	})
}

func readKey(file string) (identity.Key, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return identity.Key{}, err
	}
	key, err := identity.ParsePEM(text)
	if err != nil {
		err = fmt.Errorf("%s: %w", file, err)
	}
	return key, err
}

func printID(file string) error {
	key, err := readKey(file)
	if err == nil {
		fmt.Println(key.ID())
	}
	return err
}

func signWith(args []string) error {
	key, err := readKey(args[0])
	if err != nil {
		return err
	}
	return signFile(key, args[1])
}

func printSigners(args []string) error {
	rules, err := update.NewRules("", "", strings.Join(args, ","))
	if err != nil {
		return err
	}
	text, err := signers(rules.Keys)
	fmt.Print(text)
	return err
}

// sign writes an update for one program.
func sign(args []string) error {
	var r update.Release
	var keys []identity.Key
	flags := flag.NewFlagSet("release sign", flag.ExitOnError)
	keyFlag(flags, &keys)
	flags.StringVar(&r.Version, "version", "", "its version, for people")
	flags.Uint64Var(&r.Sequence, "sequence", 0, "greater than that of every release before")
	flags.StringVar(&r.Target, "target", "", "such as linux/arm64 or linux/arm/6")
	program := flags.String("program", "", "the program's `file`")
	out := flags.String("out", "", "the update's `file`")
	flags.Parse(args)
	text, err := os.ReadFile(*program)
	if err != nil {
		return err
	}
	f, err := os.Create(*out)
	if err != nil {
		return err
	}
	err = update.Sign(f, r, text, keys...)
	if err = errors.Join(err, f.Close()); err != nil {
		os.Remove(*out)
	}
	return err
}

// sums prints the files' hashes, sorted by name.
func sums(files []string) error {
	slices.Sort(files)
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		fmt.Printf("%x  %s\n", sha256.Sum256(text), filepath.Base(file))
	}
	return nil
}
