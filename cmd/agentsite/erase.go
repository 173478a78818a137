package main

import (
	"context"
	"errors"
	"strings"

	"agentsite/node/state"
	"agentsite/node/state/backup"
)

// erasing are the flags of reset that erase.
type erasing struct{ erase, key, yes bool }

type erasedResult struct {
	Erased []string `json:"erased"`
	Key    bool     `json:"key_kept"`
}

func (a *app) erase(ctx context.Context, e erasing) error {
	if err := a.local("reset"); err != nil {
		return err
	}
	folder, err := a.folder()
	if err != nil {
		return err
	}
	erased, err := backup.Erase(folder, e.key, func() error {
		if e.yes {
			return nil
		}
		return a.sureToErase(ctx, folder, e.key)
	})
	if a.json && err == nil {
		return a.printJSON(erasedResult{append([]string{}, erased...), !e.key})
	}
	if len(erased) > 0 {
		err = errors.Join(err, a.say("erased from %s: %s", folder, strings.Join(erased, ", ")))
	}
	switch {
	case err != nil:
		return err
	case len(erased) == 0:
		return a.say("there was nothing to erase in %s", folder)
	}
	return a.say("Nobody owns the site now, until a claim or owner: in its configuration says who. An emergency stop that was latched still is.")
}

// sureToErase has somebody say so who cannot have meant something else.
func (a *app) sureToErase(ctx context.Context, folder state.Folder, key bool) error {
	if _, ok := a.terminal(); !ok {
		return usagef("there is no terminal to ask on whether you are sure: --yes says so")
	}
	what := ""
	if key {
		what = " and the key, which is the site's name for all who know it,"
	}
	const word = "erase"
	said, err := a.prompt(ctx, "The owners, permissions, tokens and journal"+what+" of the site in "+clean(string(folder))+" go, and only a backup brings them back.\nType "+word+" to go on: ", false)
	if err == nil && said != word {
		return usagef("this was not the word %s: nothing is erased", word)
	}
	return err
}
