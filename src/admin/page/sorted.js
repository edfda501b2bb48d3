/*
 * sorted.js -- lists that the server sorts, filters and counts: one page of each is here.
 */
class SortedList {
    // What it is called in the API and among `ui.sorts`; its order until one is chosen.
    constructor(name, usual, columns, filter) {
        Object.assign(this, {name, usual, columns, filter});
        Object.assign(this, {rows: [], next: null, total: 0, before: 0, readMs: 0, asked: ''});
        this.cursors = [null]; // of the pages up to this one
    }
    wanted() {
        const chosen = ui.sorts[this.name];
        const sort = chosen ? (chosen.isDown ? '-' : '') + this.columns()[chosen.column].sort
            : this.usual;
        return {...this.filter(), sort, limit: ROWS_SHOWN, cursor: this.cursors.at(-1)};
    }
    // Are the rows those that are wanted now?
    isCurrent() {
        return this.asked === JSON.stringify(this.wanted());
    }
    async read() {
        const wanted = this.wanted(), page = await ask(query(this.name, wanted));
        if (JSON.stringify(wanted) !== JSON.stringify(this.wanted()))
            return; // somebody looks at something else
        if (page[this.name].length === 0 && this.cursors.length > 1) {
            this.cursors.pop(); // what was here has gone meanwhile
            return this.read();
        }
        this.rows = page[this.name];
        this.next = page.next;
        this.total = page.total;
        this.before = page.before;
        this.asked = JSON.stringify(wanted);
        this.readMs = Date.now();
    }
    // From the first page on, because something else is wanted.
    restart() {
        this.cursors = [null];
        readers[this.name].now();
        draw();
    }
    turn(step) {
        if (step > 0 && this.next)
            this.cursors.push(this.next);
        else if (step < 0 && this.cursors.length > 1)
            this.cursors.pop();
        readers[this.name].now();
        draw();
    }
    pager() {
        const from = this.before + 1, to = this.before + this.rows.length;
        return this.rows.length === 0 ? null : pager(`${count(from)}–${count(to)} of ` +
            count(this.total), this.cursors.length === 1, !this.next || !this.isCurrent(),
        step => this.turn(step));
    }
}

// By the names of their tables.
const sortedLists = {};
