# What the console's action "build" runs on a node: brings the packages that the working copy asks for, and builds the console's pages from
# its sources. What is there already, of the same content, is left as it is. The servers run from src/ as it lies there.
.PHONY: build pages
build: pages

node_modules/.package-lock.json: package-lock.json
	npm ci --ignore-scripts
	touch $@

# By content and not by time: going back to an older commit must bring its pages back.
pages: node_modules/.package-lock.json
	@sources=$$(find web src/base src/wire/webapi package.json package-lock.json -type f ! -name '*.test.ts' -exec cksum {} + | LC_ALL=C sort | cksum) || exit 1; \
	if [ -e dist/web/index.html ] && [ "$$(cat dist/web/.built-from 2>/dev/null)" = "$$sources" ]; then \
	  echo 'The pages are those of these sources already.'; \
	else \
	  npm run build:web && printf '%s\n' "$$sources" >dist/web/.built-from; \
	fi
