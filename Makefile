# What the console's action "build" runs on a node: brings the packages that the working copy asks for. Nothing is done when they are there.
.PHONY: build
build: node_modules/.package-lock.json

node_modules/.package-lock.json: package-lock.json
	npm ci
	touch $@
