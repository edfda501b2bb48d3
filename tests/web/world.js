/*
 * world.js -- what the tests of the web page stand on: a server, fake clients, a browser.
 *
 * HOLDFASTD, PEER, CHROMIUM and ARTEFACTS come from tests/web/run. Everything that a test starts is
 * ended by its own handle in `end`, however the test ends, and its directory is removed. Nothing
 * waits for a fixed time: `until` asks again and again, and fails with what it saw last.
 */
'use strict';

const {spawn, spawnSync} = require('node:child_process');
const fs = require('node:fs');
const http = require('node:http');
const os = require('node:os');
const path = require('node:path');
const {chromium} = require('playwright-core');

const PATIENCE_MS = 120000;

function pause(ms) {
    return new Promise(done => setTimeout(done, ms));
}

async function until(what, check, patienceMs = PATIENCE_MS) {
    const deadline = Date.now() + patienceMs;
    let last;
    for (;;) {
        try {
            last = await check();
            if (last)
                return last;
        } catch (error) {
            last = error.message;
        }
        if (Date.now() > deadline)
            throw new Error(`waited in vain until ${what}; last seen: ${last}`);
        await pause(50);
    }
}

function freePort() {
    const result = spawnSync(process.env.PEER, ['free-port'], {encoding: 'utf8'});
    return Number(result.stdout);
}

class World {
    constructor(options = []) {
        this.options = options;
        this.directory = fs.mkdtempSync(path.join(os.tmpdir(), 'holdfast-web-'));
        this.processes = new Set();
        this.port = freePort();
        do
            this.httpPort = freePort();
        while (this.httpPort === this.port);
        this.server = null;
        this.serverLog = '';
        this.url = `http://127.0.0.1:${this.httpPort}/`;
    }

    // The machine of a monitor boots: it reads its boot id below a directory of ours.
    bootAnew(number) {
        const directory = path.join(this.directory, 'machine', 'proc', 'sys', 'kernel', 'random');
        fs.mkdirSync(directory, {recursive: true});
        fs.writeFileSync(path.join(directory, 'boot_id'),
            String(number).padStart(8, '0') + '-1111-2222-3333-444444444444\n');
    }

    start(program, args) {
        const child = spawn(program, args, {stdio: ['ignore', 'pipe', 'pipe'],
            env: {...process.env, MALLOC_PERTURB_: '0',
                HOLDFAST_MACHINE_ROOT: path.join(this.directory, 'machine')}});
        child.said = '';
        child.stdout.on('data', data => child.said += data);
        child.stderr.on('data', data => child.said += data);
        child.ended = new Promise(done => child.on('close', done));
        child.ended.then(() => this.processes.delete(child));
        this.processes.add(child);
        return child;
    }

    // The server, again on the same ports and the same store.
    async serve(...more) {
        this.server = this.start(process.env.HOLDFASTD, ['--listen', '127.0.0.1', '--port',
            String(this.port), '--http', `127.0.0.1:${this.httpPort}`, '--no-rpcbind', '--store',
            'lmdb:' + path.join(this.directory, 'store'), '--sync', 'process', ...this.options,
            ...more]);
        await until('the server is ready: ' + this.server.said, () =>
            /(ready|monitoring) on port/.test(this.server.said) || this.server.exitCode !== null);
        if (this.server.exitCode !== null)
            throw new Error('the server has ended: ' + this.server.said);
    }

    async kill(child = this.server) {
        child.kill('SIGKILL');
        await child.ended;
    }

    // A command of the fake client: `host` is the last number of its address.
    peer(host, name, ...command) {
        return this.start(process.env.PEER, ['-s', `127.77.0.${host}`, '-n', name, '127.0.0.1',
            String(this.port), ...command.map(String)]);
    }

    // The same, until it has said a word; it may go on.
    async peerSays(word, host, name, ...command) {
        const child = this.peer(host, name, ...command);
        await until(`${name} ${command.join(' ')} says ${word}: ${child.said}`, () =>
            child.said.includes(word));
        return child;
    }

    // The headers and the text at a path, as anything but a browser sees them.
    get(at) {
        return new Promise((done, fail) => http.get(this.url + at.slice(1), reply => {
            let text = '';
            reply.setEncoding('utf8');
            reply.on('data', data => text += data);
            reply.on('end', () => done({status: reply.statusCode, headers: reply.headers, text}));
        }).on('error', fail));
    }

    // An order over the control socket, as the command gives it; its status.
    order(method, at) {
        return new Promise((done, fail) => http.request({method, path: at, socketPath:
            path.join(this.directory, 'store', 'control.sock')}, reply => {
            reply.resume();
            reply.on('end', () => done(reply.statusCode));
        }).on('error', fail).end());
    }

    async end() {
        for (const child of [...this.processes])
            await this.kill(child);
        fs.rmSync(this.directory, {recursive: true, force: true});
    }
}

// A browser; pages of it remember what went wrong in them.
async function openBrowser() {
    return chromium.launch({executablePath: process.env.CHROMIUM, headless: true,
        args: ['--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage',
            '--disable-background-networking', '--no-first-run']});
}

async function openPage(browser, world, options = {}, hash = '') {
    const context = await browser.newContext({viewport: {width: 1280, height: 860},
        reducedMotion: 'reduce', ...options});
    context.setDefaultTimeout(PATIENCE_MS);
    const page = await context.newPage();
    page.wrongs = [];
    page.on('pageerror', error => page.wrongs.push(error.message));
    page.on('console', message => {
        // That an address does not answer is what some tests are about.
        if (message.type() === 'error' && !/Failed to load resource/.test(message.text()))
            page.wrongs.push(message.text());
    });
    page.on('request', request => {
        const url = request.url();
        if (!url.startsWith(world.url) && !url.startsWith('data:'))
            page.wrongs.push('asked for ' + url);
    });
    page.on('dialog', dialog => {
        page.wrongs.push('a dialog: ' + dialog.message());
        dialog.dismiss();
    });
    await page.goto(world.url + hash);
    // What happens before its stream is there is not in its log.
    await shows(page, '#link', 'Live');
    return page;
}

async function keep(page, name) {
    const directory = process.env.ARTEFACTS;
    fs.mkdirSync(directory, {recursive: true});
    await page.screenshot({path: path.join(directory, name + '.png'), fullPage: true});
}

async function text(page, selector) {
    return (await page.locator(selector).allInnerTexts()).join('\n');
}

async function shows(page, selector, words) {
    await until(`${selector} shows ${words}`, async () => {
        const seen = await text(page, selector);
        if (words instanceof RegExp ? words.test(seen) : seen.includes(words))
            return true;
        throw new Error(seen);
    });
}

async function hides(page, selector, words) {
    await until(`${selector} does not show ${words}`, async () => {
        const seen = await text(page, selector);
        if (!(words instanceof RegExp ? words.test(seen) : seen.includes(words)))
            return true;
        throw new Error(seen);
    });
}

module.exports = {World, openBrowser, openPage, keep, text, shows, hides, until, pause};
