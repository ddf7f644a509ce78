#!/bin/bash
# rename-module.sh MODULE: gives the Go module of the checkout in the working directory another path, such as that of the
# repository that it is published in: in go.mod, in every import, and wherever else a package is named. Nothing else changes.
set -euo pipefail

die() { echo "make rename-module: $*" >&2; exit 1; }

new=${1-}
[[ $new =~ ^[a-zA-Z0-9][a-zA-Z0-9._~/-]*$ ]] || die "'$new' is no path of a Go module; give MODULE=github.com/OWNER/NAME"
git diff --quiet HEAD || die "there are changes that are not committed; commit them, so that git can undo this"
old=$(go list -m)
[ "$new" != "$old" ] || die "the module is called $old already"
tops=$(go list ./... | sed -n "s,^$old/\([^/]*\).*,\1,p" | sort -u | paste -sd'|')

# In text: OLD/DIRECTORY of a package. OLD alone is often the command, so that counts only where it must be the package.
git grep -lIz --fixed-strings -e "$old" -- ':!results/*.txt' | OLD=$old NEW=$new TOPS=$tops xargs -0 perl -pi -e '
	BEGIN { ($old, $new, $tops) = @ENV{"OLD", "NEW", "TOPS"} }
	s{(?<![\w./-])\Q$old\E(?=/(?:$tops)\b)}{$new}g;
	s{^(\s*(?:import\s+)?(?:[\w.]+\s+)?")\Q$old\E"$}{$1$new"} if $ARGV =~ /\.go$/;
	s{^((?:module|replace|require|\t)\s*)\Q$old\E(?=$|\s+(?:v0|=>))}{$1$new} if $ARGV =~ m{(^|/)go\.mod$};
	s{^(XS-Go-Import-Path: )\Q$old\E$}{$1$new} if $ARGV eq "debian/control";
	s{(\bgo (?:doc|install) (?:-\w+ )?)\Q$old\E(?![\w./-])}{$1$new}g;
'
git diff --name-only -z -- '*.go' | xargs -0r gofmt -w
echo "the module is now $new: see git diff, then go vet ./... and commit"
