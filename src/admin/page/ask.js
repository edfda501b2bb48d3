/*
 * ask.js -- asks the server, never twice at a time for the same.
 */
class Refused extends Error {
    constructor(status, said) {
        super(said.hint ? said.error + ': ' + said.hint : said.error);
        this.status = status;
        this.said = said;
    }
}

async function ask(path, wantsText) {
    const control = new AbortController();
    const timer = setTimeout(() => control.abort(), PATIENCE_MS);
    try {
        const reply = await fetch(path, {signal: control.signal, cache: 'no-store'});
        state.answeredMs = Date.now();
        if (reply.ok && wantsText)
            return await reply.text();
        if (reply.ok) {
            const said = await reply.json();
            learnPaths(said.locks);
            learnPaths(said.waiters);
            return said;
        }
        let said = {error: 'status ' + reply.status};
        try {
            said = await reply.json();
        } catch (error) { /* not ours: the number has to do */ }
        throw new Refused(reply.status, said);
    } finally {
        clearTimeout(timer);
    }
}

function query(path, parameters) {
    const text = Object.entries(parameters).filter(([, value]) => value !== null && value !== '')
        .map(([name, value]) => name + '=' + encodeURIComponent(value)).join('&');
    return '/api/v1/' + path + (text ? '?' + text : '');
}

// Something that is read again and again: never twice at a time, and the slower the less often.
class Reader {
    constructor(work, isWanted, rest = 4) {
        this.work = work;
        this.isWanted = isWanted;
        this.rest = rest; // how many times as long as the work took
        this.isBusy = false;
        this.isDue = false;
        this.isUrgent = false;
        this.freeAtMs = 0;
        this.timer = 0;
    }
    want(delayMs = 0) {
        if (this.isBusy) {
            this.isDue = true;
            return;
        }
        if (this.timer)
            return;
        this.timer = setTimeout(() => {
            this.timer = 0;
            this.run();
        }, Math.max(delayMs, this.freeAtMs - Date.now()));
    }
    // At once, because somebody looks at something else now.
    now() {
        clearTimeout(this.timer);
        this.timer = 0;
        this.freeAtMs = 0;
        this.isUrgent = this.isBusy;
        this.want();
    }
    async run() {
        if (document.hidden || !this.isWanted())
            return;
        this.isBusy = true;
        this.isDue = false;
        const begin = Date.now();
        try {
            await this.work();
        } catch (error) {
            if (!(error instanceof Refused) && error.name !== 'AbortError' &&
                !(error instanceof TypeError))
                console.error(error);
        }
        const tookMs = Date.now() - begin;
        this.freeAtMs = this.isUrgent ? 0
            : Date.now() + Math.max(SETTLE_MS, this.rest * tookMs);
        this.isBusy = this.isUrgent = false;
        draw();
        if (this.isDue)
            this.want();
    }
}
