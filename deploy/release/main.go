// Command release makes release keys, signed updates, software bills of materials and lists of
// hashes. deploy/packages calls it for "make packages".
//
//	release key FILE                          creates a key and prints its public half
//	release sign -key FILE [-key FILE] ...    writes an update, see release sign -help
//	release sbom PROGRAM                      prints the modules of a program, as CycloneDX
//	release notices PROGRAM...                prints the licences of what programs link
//	release sums FILE...                      prints SHA-256 hashes, as sha256sum does
package main

import (
	"crypto/sha256"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"agentsite/node/identity"
	"agentsite/node/update"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) < 2 {
		return errors.New("name a command: key FILE, sign, sbom PROGRAM, notices PROGRAM or sums FILE")
	}
	switch args[0] {
	case "key":
		return makeKey(args[1])
	case "sign":
		return sign(args[1:])
	case "sbom":
		return sbom(os.Stdout, args[1])
	case "notices":
		return notices(os.Stdout, args[1:])
	case "sums":
		return sums(args[1:])
	}
	return fmt.Errorf("there is no command %q, only key, sign, sbom, notices and sums", args[0])
}

// makeKey creates a private key in a file that does not exist yet.
func makeKey(file string) error {
	key := identity.New()
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%s exists already and is not replaced, because updates could not be signed without it: name another file", file)
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

// sign writes an update for one program.
func sign(args []string) error {
	var r update.Release
	var keys []identity.Key
	flags := flag.NewFlagSet("release sign", flag.ExitOnError)
	flags.Func("key", "a `file` with a key that signs; again for a second", func(file string) error {
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		key, err := identity.ParsePEM(text)
		keys = append(keys, key)
		return err
	})
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
